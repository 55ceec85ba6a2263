"""Carries out the blows of a plan on what happens to be there, and takes back those that last."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final, assert_never

from effectonce.lab.charges import DatabaseError
from effectonce.lab.journal import Death, Fact
from effectonce.lab.processes import ProcessFailed, Worker
from effectonce.lab.proxy import Fault, Proxy
from effectonce.lab.servers.faults import ServiceFailed
from effectonce.lab.servers.server import Server
from effectonce.lab.soak.plan import Blow, Strike
from effectonce.lab.soak.system import Ground
from effectonce.lab.soak.tasks import LEASE

NAP: Final = 2 * LEASE
"""Seconds that a sleeper sleeps: longer than its lease, and than the broker waits."""
AWAY: Final = 1.0
"""Seconds that a killed server stays away."""
_REQUESTS: Final = {
    "store postgresql": rb"COMMIT",
    "store redis": rb"EVALSHA",
    "broker redis": rb"LPUSH",
    "broker rabbitmq": rb"\x00\x3c\x00\x28",  # the method basic.publish
}


class Blows:
    """Strikes one ground; *struck* counts the blows that met something."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._later: list[tuple[float, Callable[[], None]]] = []
        self.struck: Counter[Blow] = Counter()

    def strike(self, strike: Strike) -> None:
        """Carry one out; what is not there to be struck is not counted."""
        if self._carry_out(strike.blow, strike.aim):
            self.struck[strike.blow] += 1

    def step(self) -> None:
        """Take back what has lasted long enough, and start again what has ended by itself."""
        now = time.monotonic()
        due = [each for each in self._later if each[0] <= now]
        self._later = [each for each in self._later if each[0] > now]
        for _, take_back in due:
            take_back()
        self._supervise()

    def end(self) -> None:
        """Take everything back."""
        for _, take_back in self._later:
            take_back()
        self._later.clear()
        for network in (self._ground.broker_network, self._ground.store_network):
            if network is not None:
                network.heal()
        self._supervise()

    def _supervise(self) -> None:
        for worker in self._ground.workers:
            worker.start()

    def _carry_out(self, blow: Blow, aim: int) -> bool:  # noqa: C901 - one line a blow
        worker = self._ground.workers[aim % len(self._ground.workers)]
        match blow:
            case Blow.CHILD:
                return self._kill_child(aim)
            case Blow.WORKER:
                return self._kill_worker(worker)
            case Blow.NAP:
                worker.pause()
                return self._for(NAP, lambda: _wake(worker))
            case Blow.CHILD_NAP:
                return self._stop_child(aim)
            case Blow.STORE_REPLY | Blow.BROKER_REPLY:
                return self._spoil(blow, Fault.LOST_REPLY, aim)
            case Blow.STORE_REQUEST | Blow.BROKER_REQUEST:
                return self._spoil(blow, Fault.LOST_REQUEST, aim)
            case Blow.STORE_CUT | Blow.BROKER_CUT:
                return self._cut(blow, aim)
            case Blow.STORE_KILL:
                return self._kill_server(self._ground.store)
            case Blow.BROKER_KILL:
                return self._kill_server(self._ground.broker)
            case Blow.FILE_HELD:
                return self._hold_file()
        assert_never(blow)

    def _kill_child(self, aim: int) -> bool:
        found = self._child(aim)
        if found is None:
            return False
        worker, pid = found
        self._note("child_killed", pid)
        with suppress(ProcessFailed):
            worker.kill_child(pid)
            return True
        return False

    def _kill_worker(self, worker: Worker) -> bool:
        for pid in (worker.pid, *worker.children()):
            self._note("worker_killed", pid)
        worker.kill()
        worker.start()
        return True

    def _stop_child(self, aim: int) -> bool:
        found = self._child(aim)
        if found is None:
            return False
        worker, pid = found
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)

        def wake() -> None:
            if worker.is_running and pid in worker.children():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

        return self._for(NAP, wake)

    def _child(self, aim: int) -> tuple[Worker, int] | None:
        """A process of a pool: one with a body, if there is any."""
        self._ground.journal.read()
        busy = {run.pid for run in self._ground.journal.runs if not run.over}
        pools = [(worker, pid) for worker in self._ground.workers if worker.is_running for pid in worker.children()]
        chosen = [each for each in pools if each[1] in busy] or pools
        return chosen[aim % len(chosen)] if chosen else None

    def _spoil(self, blow: Blow, fault: Fault, aim: int) -> bool:
        network, request = self._network(blow)
        if network is None:
            return False
        network.when(_REQUESTS[request], fault, times=1 + aim % 3)
        return True

    def _cut(self, blow: Blow, aim: int) -> bool:
        network, _ = self._network(blow)
        if network is None:
            return False
        network.cut(reset=bool(aim % 2))
        return True

    def _network(self, blow: Blow) -> tuple[Proxy | None, str]:
        """The network that is struck, and what its requests of interest hold."""
        if blow in {Blow.STORE_REPLY, Blow.STORE_REQUEST, Blow.STORE_CUT}:
            return self._ground.store_network, f"store {self._ground.system.store}"
        return self._ground.broker_network, f"broker {self._ground.system.broker}"

    def _kill_server(self, server: Server | None) -> bool:
        if server is None or not server.is_running:
            return False
        server.kill()
        return self._for(AWAY, lambda: _bring_back(server))

    def _hold_file(self) -> bool:
        if self._ground.judge is None:
            return False
        with suppress(DatabaseError):
            return self._for(AWAY, self._ground.judge.lock_file())
        return False

    def _for(self, seconds: float, take_back: Callable[[], None]) -> bool:
        self._later.append((time.monotonic() + seconds, take_back))
        return True

    def _note(self, what: Death, pid: int) -> None:
        self._ground.journal.note(Fact(what=what, pid=pid))


def _wake(worker: Worker) -> None:
    if worker.is_running:
        worker.resume()


def _bring_back(server: Server) -> None:
    """Start a killed server; once more where a busy machine did not let it answer in time."""
    with suppress(ServiceFailed):
        server.start()
        return
    server.kill()
    server.start()
