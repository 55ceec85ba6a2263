"""RabbitMQ: a node with a name, folders, ports and a port mapper (epmd) of its own.

Whoever asks gets a virtual host of its own. Asking ``rabbitmqctl`` costs a second, so virtual hosts are made several at
a time and handed out one by one.
"""

import os
import secrets
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import amqp

from effectonce.lab.ports import free_port
from effectonce.lab.reaper import Reaper
from effectonce.lab.servers import programs
from effectonce.lab.servers.faults import ServiceFailed, ServiceMissing
from effectonce.lab.servers.server import Server

USER = "guest"
MISSING = "no RabbitMQ: install rabbitmq-server"
HOSTS_AT_ONCE = 8


class PortMapper(Server):
    """Erlang's port mapper; without one of our own the node would start one on the standard port."""

    name = "epmd"

    @property
    def url(self) -> str:
        """The address; nobody needs it."""
        return f"epmd://127.0.0.1:{self.port}"

    def fresh_url(self) -> str:
        """Return the same address for all."""
        return self.url

    def command(self) -> Sequence[str]:
        """Stay in the foreground, on the loopback interface."""
        return [str(_erlang("epmd")), "-port", str(self.port), "-address", "127.0.0.1"]

    def answers(self) -> bool:
        """Ask for the names it knows."""
        command = [str(_erlang("epmd")), "-port", str(self.port), "-names"]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0


class RabbitMQ(Server):
    """A node without plugins, in the foreground."""

    name = "RabbitMQ"

    def __init__(self, folder: Path, *, reaper: Reaper) -> None:
        super().__init__(folder, reaper=reaper)
        self._mapper = PortMapper(folder / "epmd", reaper=reaper)
        self._hosts: deque[str] = deque()

    @property
    def url(self) -> str:
        """The address of the default virtual host, which nobody gets."""
        return self._address("%2F")

    @staticmethod
    def find() -> Path:
        """Return the node's script; raises ServiceMissing."""
        found = programs.find("rabbitmq-server")
        if found:
            return found
        raise ServiceMissing(MISSING)

    def prepare(self) -> None:
        """Find the programs, write the configuration."""
        self._program = self.find()
        self._distribution_port = free_port()
        (self.folder / "plugins").write_text("[].\n")
        (self.folder / "env.conf").touch()

    def command(self) -> Sequence[str]:
        """Run the node's script, which becomes the node (see ``environment``)."""
        (self.folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\n"
            "disk_free_limit.absolute = 10MB\n"
            "log.file = false\n"
            "log.console = true\n"
            "log.console.level = warning\n"
        )
        self._mapper.start()
        return [str(self._program)]

    def environment(self) -> Mapping[str, str]:
        """Give the node its own name, folders and ports; RUNNING_UNDER_SYSTEMD makes the script exec the node."""
        return {
            "HOME": str(self.folder),
            "ERL_EPMD_PORT": str(self._mapper.port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RUNNING_UNDER_SYSTEMD": "true",
            "RABBITMQ_NODENAME": f"effectonce-{self._distribution_port}@localhost",
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "env.conf"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "logs"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                "-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none"
            ),
        }

    def answers(self) -> bool:
        """Open a connection as a client does."""
        try:
            with amqp.Connection(f"127.0.0.1:{self.port}", userid=USER, password=USER, connect_timeout=5):
                return True
        except (OSError, amqp.AMQPError):
            return False

    def stop(self) -> None:
        """Stop the node, then its port mapper."""
        super().stop()
        self._mapper.stop()

    def fresh_url(self) -> str:
        """Return the address of an empty virtual host that nobody else had."""
        if not self._hosts:
            self._hosts.extend(self._make_hosts())
        return self._address(self._hosts.popleft())

    def control(self, *words: str) -> str:
        """Run ``rabbitmqctl`` on this node and return what it prints."""
        command = [str(self._program.with_name("rabbitmqctl")), "-q", *words]
        environment = {**os.environ, **self.environment()}
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        if done.returncode:
            message = f"rabbitmqctl {' '.join(words)} failed: {done.stderr or done.stdout}"
            raise ServiceFailed(message)
        return done.stdout

    def _make_hosts(self) -> list[str]:
        names = [f"once-{secrets.token_hex(4)}" for _ in range(HOSTS_AT_ONCE)]
        listed = ", ".join(f'<<"{name}">>' for name in names)
        self.control(
            "eval",
            f'[begin rabbit_vhost:add(H, <<"{USER}">>), rabbit_auth_backend_internal:set_permissions('
            f'<<"{USER}">>, H, <<".*">>, <<".*">>, <<".*">>, <<"{USER}">>) end || H <- [{listed}]].',
        )
        return names

    def _address(self, host: str) -> str:
        return f"amqp://{USER}:{USER}@127.0.0.1:{self.port}/{host}"


def _erlang(program: str) -> Path:
    found = programs.find(program)
    if found is None:
        message = f"no {program}: install Erlang with rabbitmq-server"
        raise ServiceMissing(message)
    return found
