"""Redis, or Valkey where there is no Redis, for tests."""

from pathlib import Path

from effectonce.lab.servers import redis
from effectonce.lab.servers.faults import ServiceMissing
from tests.services import programs


class Redis(redis.Redis):
    """A server that keeps its data over a kill."""

    variable = "EFFECTONCE_TEST_REDIS_URL"

    @staticmethod
    def find() -> Path:
        """Return the program, installing it if need be."""
        found = _installed()
        if found:
            return found
        reason = programs.install_debian("redis-server")
        found = _installed() or redis.embedded()
        if found:
            return found
        message = f"{redis.MISSING}, or set {Redis.variable} ({reason})"
        raise ServiceMissing(message)


def _installed() -> Path | None:
    return programs.find("redis-server") or programs.find("valkey-server")
