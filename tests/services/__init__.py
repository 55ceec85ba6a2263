"""The servers that the tests run against: our own ones, on ports of their own, in a folder of their own.

A server starts when a test first asks for it and lives until the test run ends. Tests may stop it, kill it, freeze
it and start it again; its port and its files stay. What runs on the machine already is never touched: no standard
port, no standard folder, no shared port mapper. Should the test run be killed, a reaper (a small process of its own)
ends the servers and removes the folder.

Where a program is missing it is installed if that is allowed (see ``programs``); else ``ServiceMissing`` says what to
install. A URL in the environment is used instead of a server of our own, and then tests that kill have nothing to
kill: they get ``ServiceMissing`` too.
"""

from effectonce.lab.servers.faults import ServiceFailed, ServiceMissing
from effectonce.lab.servers.server import Server
from tests.services.fleet import Fleet
from tests.services.given import Given
from tests.services.mariadb import MariaDB
from tests.services.pgbouncer import PgBouncer
from tests.services.postgresql import PostgreSQL
from tests.services.rabbitmq import RabbitMQ
from tests.services.redis import Redis

__all__ = [
    "Fleet",
    "Given",
    "MariaDB",
    "PgBouncer",
    "PostgreSQL",
    "RabbitMQ",
    "Redis",
    "Server",
    "ServiceFailed",
    "ServiceMissing",
]
