"""The index of what waits for a person, which tables made before it lack."""

from alembic import op

from effectonce.stores.sql.schema import create_missing

revision = "pre_0002"
down_revision = "pre_0001"


def upgrade() -> None:
    """Create what is missing."""
    create_missing(op.get_bind(), op.get_context().opts["effectonce_tables"])
