"""A round's broker, store and workers: servers live as long as the soak, their places and workers as long as a round.

Between workers and their servers stands a network that can be spoiled. Results lie in a server that nothing strikes,
and the soak itself sends and looks over the direct way: the judge's own connections are not in play.
"""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import redis

from effectonce import EffectOnce
from effectonce.lab.charges import Charges
from effectonce.lab.journal import Journal
from effectonce.lab.processes import BOOT_SECONDS, Worker, unbroken
from effectonce.lab.proxy import Proxy
from effectonce.lab.reaper import Reaper
from effectonce.lab.servers.faults import ServiceMissing
from effectonce.lab.servers.postgresql import PostgreSQL
from effectonce.lab.servers.rabbitmq import RabbitMQ
from effectonce.lab.servers.redis import Redis
from effectonce.lab.servers.server import Server
from effectonce.lab.soak.outside import Outside
from effectonce.lab.soak.plan import ALL, System
from effectonce.lab.soak.tasks import Site, open_app

APP: Final = "effectonce.lab.soak.soak_app"
WORKERS: Final = 2
POOL: Final = 2
_KINDS: Final[dict[str, type[Server]]] = {
    "results": Redis,
    "broker redis": Redis,
    "store redis": Redis,
    "broker rabbitmq": RabbitMQ,
    "store postgresql": PostgreSQL,
}


class Servers:
    """The servers of one soak, each started when a round first needs it, ended when the ``with`` ends."""

    def __init__(self, folder: Path, reaper: Reaper, undo: ExitStack) -> None:
        self.folder = folder
        self.reaper = reaper
        self._undo = undo
        self._servers: dict[str, Server] = {}

    def start(self, role: str) -> Server:
        """Return the server of *role*, running."""
        if role not in self._servers:
            server = unbroken(lambda: _KINDS[role](self.folder / role.replace(" ", "-"), reaper=self.reaper))
            self._undo.callback(server.kill)
            self._servers[role] = server
        self._servers[role].resume()
        self._servers[role].start()
        return self._servers[role]


@contextmanager
def open_servers() -> Iterator[Servers]:
    """Give servers in a folder that goes with them; if we are killed, a reaper ends them."""
    with ExitStack() as undo:
        reaper = Reaper()
        undo.callback(reaper.close)
        folder = Path(tempfile.mkdtemp(prefix="effectonce-soak-"))
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        reaper.remove(str(folder))
        folder.chmod(0o711)  # PostgreSQL runs as another user and has its folder inside
        yield Servers(folder, reaper, undo)


def possible_systems(wanted: Sequence[System] = ALL) -> tuple[list[System], list[str]]:
    """Return the systems whose programs this machine has, and why others are left out."""
    reasons: dict[str, str] = {}
    for role, kind in _KINDS.items():
        try:
            kind.find()  # type: ignore[attr-defined]  # each kind has its own
        except ServiceMissing as missing:
            reasons[role] = str(missing)
    needs = {system: {"results", f"broker {system.broker}", f"store {system.store}"} for system in wanted}
    possible = [system for system in wanted if not needs[system] & reasons.keys()]
    return possible, sorted({reasons[role] for system in wanted for role in needs[system] & reasons.keys()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a round takes place on. *store* and *store_network* are None for a file."""

    system: System
    site: Site
    app: Any
    once: EffectOnce
    judge: Charges | None
    journal: Journal
    outside: Outside
    broker: Server
    broker_network: Proxy
    store: Server | None
    store_network: Proxy | None
    workers: list[Worker]

    def is_quiet(self) -> bool:
        """Tell whether the broker is known to hold no message; RabbitMQ does not tell of those that workers hold."""
        if self.system.broker != "redis":
            return False
        with redis.Redis.from_url(self.site.broker) as client:
            return not client.llen(self.app.conf.task_default_queue) and not client.zcard("unacked_index")


@contextmanager
def raise_ground(servers: Servers, system: System, *, renews: bool, guards: bool = True) -> Iterator[Ground]:
    """Put a round up, its workers ready; take it down in any case."""
    with ExitStack() as undo:
        folder = Path(tempfile.mkdtemp(prefix="effectonce-round-", dir=servers.folder))
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        broker = servers.start(f"broker {system.broker}")
        store = None if system.store == "sqlite" else servers.start(f"store {system.store}")
        direct = _site(servers, system, folder, broker, store, renews=renews, undo=undo)
        direct = replace(direct, guards=guards)
        broker_network = undo.enter_context(Proxy(direct.broker))
        store_network = undo.enter_context(Proxy(direct.ledger)) if store else None
        judge = direct.judge()
        if judge is not None:
            judge.create()
        app, once = open_app(direct, confirms=system.broker == "rabbitmq")
        undo.callback(app.close)
        undo.callback(once.ledger.close)
        once.ledger.create_schema()
        ground = Ground(
            system=system,
            site=direct,
            app=app,
            once=once,
            judge=judge,
            journal=direct.journal,
            outside=direct.outside,
            broker=broker,
            broker_network=broker_network,
            store=store,
            store_network=store_network,
            workers=[],
        )
        _start_workers(ground, servers, folder, undo)
        yield ground


def _site(
    servers: Servers,
    system: System,
    folder: Path,
    broker: Server,
    store: Server | None,
    *,
    renews: bool,
    undo: ExitStack,
) -> Site:
    file = f"sqlite:///{folder / 'ledger.sqlite'}"
    ledger = _place(store, undo) if store else file
    return Site(
        broker=_place(broker, undo),
        results=_place(servers.start("results"), undo),
        ledger=ledger,
        charges=None if system.store == "redis" else ledger,
        folder=str(folder),
        renews=renews,
    )


def _place(server: Server, undo: ExitStack) -> str:
    url = server.fresh_url()
    undo.callback(_put_back, server, url)
    return url


def _put_back(server: Server, url: str) -> None:
    """Empty a place; one that cannot be asked goes with its server at the end."""
    with suppress(Exception):
        server.put_back(url)


def _start_workers(ground: Ground, servers: Servers, folder: Path, undo: ExitStack) -> None:
    over = ground.broker_network.url
    ledger = ground.store_network.url if ground.store_network else ground.site.ledger
    # A killed pool leaves temporary folders of its own behind.
    env = {**replace(ground.site, broker=over, ledger=ledger).environment(), "TMPDIR": str(folder)}
    for number in range(1, WORKERS + 1):
        worker = Worker(
            APP, folder=folder, name=f"w{number}", concurrency=POOL, env=env, cwd=folder, reaper=servers.reaper
        )
        undo.callback(worker.kill)
        ground.workers.append(worker.start())
    for worker in ground.workers:
        worker.wait_ready(seconds=2 * BOOT_SECONDS)
