"""A Redis Sentinel that knows where the tests' Redis is."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import redis

from effectonce.lab.reaper import Reaper
from effectonce.lab.servers.server import Server
from tests.services import Redis

MASTER = "posts"


class Sentinel(Server):
    """One Sentinel; it watches, and has nothing to fail over to."""

    name = "Sentinel"
    variable = ""

    def __init__(self, folder: Path, master: str, *, reaper: Reaper) -> None:
        super().__init__(folder, reaper=reaper)
        self._master = urlsplit(master)

    @property
    def url(self) -> str:
        """The address by which kombu asks for the master's database."""
        return f"sentinel://127.0.0.1:{self.port}{self._master.path}"

    def fresh_url(self) -> str:
        """Return the address of the one database that it was made for."""
        return self.url

    def command(self) -> Sequence[str]:
        """Write the configuration, which Sentinel rewrites, and run it."""
        conf = self.folder / "sentinel.conf"
        conf.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\n"
            f"sentinel monitor {MASTER} {self._master.hostname} {self._master.port} 1\n"
        )
        return [str(Redis.find()), str(conf), "--sentinel"]

    def answers(self) -> bool:
        """Ask for the master."""
        with redis.Redis(port=self.port, socket_timeout=5) as client:
            try:
                return bool(client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER))
            except redis.RedisError:
                return False
