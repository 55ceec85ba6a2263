"""The tables of the first version; those that are there stay as they are."""

from alembic import op

from effectonce.stores.sql.schema import create_missing

revision = "pre_0001"
down_revision = None


def upgrade() -> None:
    """Create what is missing."""
    create_missing(op.get_bind(), op.get_context().opts["effectonce_tables"])
