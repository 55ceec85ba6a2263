"""PostgreSQL for tests."""

from pathlib import Path

from effectonce.lab.servers import postgresql
from effectonce.lab.servers.faults import ServiceMissing
from tests.services import programs


class PostgreSQL(postgresql.PostgreSQL):
    """A cluster of the test run."""

    variable = "EFFECTONCE_TEST_POSTGRESQL_URL"

    @staticmethod
    def find() -> Path:
        """Return the folder of the server's programs, installing them if need be."""
        found = programs.find("initdb")
        if found:
            return found.resolve().parent
        reason = programs.install_debian("postgresql")
        found = programs.find("initdb")
        if found:
            return found.resolve().parent
        package = programs.install_registry("pgserver")
        if package:
            return package / "pginstall" / "bin"
        message = (
            f"{postgresql.MISSING}, or set {PostgreSQL.variable} "
            f"({reason}; the package pgserver could not be installed for this Python either)"
        )
        raise ServiceMissing(message)
