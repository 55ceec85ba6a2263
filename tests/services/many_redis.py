"""A Redis of more than one server: a master with a replica and a Sentinel, and a Cluster of two nodes."""

from collections.abc import Sequence
from pathlib import Path

import redis
from redis.sentinel import Sentinel

from effectonce.lab.process_tree import wait_until
from effectonce.lab.reaper import Reaper
from effectonce.lab.servers.faults import ServiceFailed
from effectonce.lab.servers.redis import NEVER
from effectonce.lab.servers.server import Server
from tests.services.redis import Redis

MASTER = "shop"
SLOTS = 16384


class Replica(Redis):
    """A server that follows another one."""

    def __init__(self, folder: Path, *, reaper: Reaper, of: int) -> None:
        super().__init__(folder, reaper=reaper)
        self._of = of

    def command(self) -> Sequence[str]:
        """As any, and whom it follows."""
        return [*super().command(), "--replicaof", f"127.0.0.1 {self._of}"]


class Watcher(Server):
    """One Sentinel that fails over after half a second."""

    name = "Sentinel"
    variable = ""

    def __init__(self, folder: Path, *, reaper: Reaper, of: int) -> None:
        super().__init__(folder, reaper=reaper)
        self._of = of

    @property
    def url(self) -> str:
        """The address of a ledger there."""
        return f"redis+sentinel://127.0.0.1:{self.port}/{MASTER}"

    def fresh_url(self) -> str:
        """Return the same: there is one master."""
        return self.url

    def command(self) -> Sequence[str]:
        """Write the configuration, which Sentinel rewrites, and run it."""
        conf = self.folder / "sentinel.conf"
        conf.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\n"
            f"sentinel monitor {MASTER} 127.0.0.1 {self._of} 1\n"
            f"sentinel down-after-milliseconds {MASTER} 500\nsentinel failover-timeout {MASTER} 2000\n"
        )
        return [str(Redis.find()), str(conf), "--sentinel"]

    def answers(self) -> bool:
        """Ask for the master."""
        return self.master() is not None

    def master(self) -> int | None:
        """The port of the master, as it sees it."""
        with redis.Redis(port=self.port, socket_timeout=5, retry=NEVER) as client:
            try:
                told = client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)
            except redis.RedisError:
                return None
        return int(told[1]) if told else None

    def knows_replicas(self) -> bool:
        """Whether it has somebody to fail over to."""
        with redis.Redis(port=self.port, socket_timeout=5, retry=NEVER) as client:
            found = client.execute_command("SENTINEL", "REPLICAS", MASTER)
        return bool(found)


class Pair:
    """A master, its replica and a Sentinel."""

    def __init__(self, folder: Path, reaper: Reaper) -> None:
        self.master = Redis(folder / "master", reaper=reaper)
        self.master.start()
        self.replica = Replica(folder / "replica", reaper=reaper, of=self.master.port)
        self.replica.start()
        self.watcher = Watcher(folder / "sentinel", reaper=reaper, of=self.master.port)
        self.watcher.start()
        _await(self._is_whole, "the replica follows, and the Sentinel knows it")

    @property
    def url(self) -> str:
        """The address of a ledger there."""
        return self.watcher.url

    def cut(self) -> None:
        """Let the replica stay as it is: it hears nothing more of its master, and may still lead."""
        with redis.Redis(port=self.master.port) as client:
            client.execute_command("ACL", "SETUSER", "default", "-psync", "-sync")
            client.execute_command("CLIENT", "KILL", "TYPE", "replica")

    def fail_over(self) -> None:
        """Kill the master; return when the replica leads."""
        self.master.kill()
        _await(lambda: self.watcher.master() == self.replica.port, "the replica leads")
        _await(lambda: self._role(self.replica) == "master", "it knows that it leads")
        _await(self._is_led, "clients are told so")

    def close(self) -> None:
        for server in (self.watcher, self.replica, self.master):
            server.resume()
            server.kill()

    def _is_whole(self) -> bool:
        with redis.Redis(port=self.master.port) as client:
            followed = client.info("replication").get("slave0", {}).get("state") == "online"
        return bool(followed) and self.watcher.knows_replicas()

    def _is_led(self) -> bool:
        try:
            sentinel = Sentinel([("127.0.0.1", self.watcher.port)], sentinel_kwargs={"retry": NEVER})
            return bool(sentinel.discover_master(MASTER))
        except redis.RedisError:
            return False

    def _role(self, server: Redis) -> str:
        with redis.Redis(port=server.port) as client:
            return str(client.info("replication")["role"])


class Node(Redis):
    """One node of a Cluster."""

    def command(self) -> Sequence[str]:
        """As any, in a Cluster; it has one database."""
        words = list(super().command())
        words[words.index("--databases") + 1] = "1"
        return [*words, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]


class TwoNodes:
    """A Cluster of two masters."""

    def __init__(self, folder: Path, reaper: Reaper) -> None:
        self.nodes = [Node(folder / f"node{at}", reaper=reaper) for at in range(2)]
        for node in self.nodes:
            node.start()
        half = SLOTS // 2
        for node, (first, last) in zip(self.nodes, ((0, half - 1), (half, SLOTS - 1)), strict=True):
            self._tell(node, "CLUSTER", "ADDSLOTSRANGE", first, last)
        self._tell(self.nodes[0], "CLUSTER", "MEET", "127.0.0.1", self.nodes[1].port)
        _await(self._is_whole, "the Cluster is whole")

    @property
    def url(self) -> str:
        """The address of a ledger there."""
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def close(self) -> None:
        for node in self.nodes:
            node.kill()

    def _is_whole(self) -> bool:
        return all(b"cluster_state:ok" in self._tell(node, "CLUSTER", "INFO") for node in self.nodes)

    @staticmethod
    def _tell(node: Node, *words: object) -> bytes:
        with redis.Redis(port=node.port) as client:
            told = client.execute_command(*words)
        return told if isinstance(told, bytes) else str(told).encode()


def _await(ready: object, what: str) -> None:
    assert callable(ready)
    if not wait_until(ready, seconds=60):
        message = f"waited in vain until {what}"
        raise ServiceFailed(message)
