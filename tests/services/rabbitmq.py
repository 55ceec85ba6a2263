"""RabbitMQ for tests."""

from pathlib import Path

from effectonce.lab.servers import rabbitmq
from effectonce.lab.servers.faults import ServiceMissing
from tests.services import programs


class RabbitMQ(rabbitmq.RabbitMQ):
    """A node of the test run."""

    variable = "EFFECTONCE_TEST_AMQP_URL"

    @staticmethod
    def find() -> Path:
        """Return the node's script, installing it if need be."""
        found = programs.find("rabbitmq-server")
        if found:
            return found
        reason = programs.install_debian("rabbitmq-server")
        found = programs.find("rabbitmq-server")
        if found:
            return found
        message = f"{rabbitmq.MISSING}, or set {RabbitMQ.variable} ({reason}; the registry has none)"
        raise ServiceMissing(message)
