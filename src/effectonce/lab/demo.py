"""The scenario of `effectonce demo`: what happens when, told as it happens.

Quiet orders are charged all the time. Meanwhile, one after the other, orders meet their trouble: a body that is longer
than the broker waits, a pool process that is killed in the middle of a body, a worker that is killed whole. At the end
all that is under way comes to rest, the workers stop, and the judges count.
"""

import time
from collections.abc import Callable, Sequence

from amqp.exceptions import AMQPError
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from effectonce.lab.addresses import DemoBroken, check_broker, check_ledger, is_redis
from effectonce.lab.caller import Caller
from effectonce.lab.charges import DatabaseError, reason_of
from effectonce.lab.journal import Death, Fact, Run
from effectonce.lab.narrator import Narrator
from effectonce.lab.orders import Order, Trouble, plan_orders
from effectonce.lab.processes import BOOT_SECONDS, Worker
from effectonce.lab.stage import POOL, WORKERS, Stage, raise_stage
from effectonce.lab.tally import Tally, count_column

LOOK_EVERY = 0.05
ACT_SECONDS = 25.0
"""The most that one trouble may take to come; what has not come by then is not counted."""
REST_SECONDS = 60.0
"""How long nothing may be answered before the demo gives up."""
RESULTS_AWAY = "reconnect to the Celery result store"
"""What Celery says, as a plain RuntimeError, when its result backend stays away (celery 5.7.0)."""

QUIET_SPAN = 25.0
"""Seconds over which quiet orders are spread."""


def run_demo(*, orders: int, seed: int, broker: str | None, ledger: str | None, narrator: Narrator) -> Tally:
    """Play the whole demo and return what it measured; nothing is left behind, whatever happens.

    Raises DemoRefused for an address that cannot be used, ProcessFailed for a worker or server that does not start,
    DemoBroken when a server went away.
    """
    broker = check_broker(broker) if broker else None
    ledger = check_ledger(ledger) if ledger else None
    with narrator:
        narrator.say(f"{orders} orders are charged by a plain task and by a guarded one; each message is sent twice")
        try:
            with raise_stage(broker=broker, ledger=ledger) as stage:
                return Demo(stage, plan_orders(orders, seed=seed), narrator).play()
        except (KombuError, AMQPError, RedisError, DatabaseError, ConnectionError, TimeoutError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and RESULTS_AWAY not in str(error):
                raise
            message = f"a server of the demo went away: {type(error).__name__}: {reason_of(error)}"
            raise DemoBroken(message) from error


class Demo:
    """One run on a stage."""

    def __init__(self, stage: Stage, orders: Sequence[Order], narrator: Narrator) -> None:
        self._stage = stage
        self._orders = orders
        self._narrator = narrator
        quiet = [order for order in orders if order.trouble is Trouble.NONE]
        pause = min(0.7, QUIET_SPAN / (len(quiet) or 1))
        self._caller = Caller(stage.shop.tasks, quiet, pause=pause, state_of=stage.shop.app.backend.get_state)
        self._journal = stage.journal
        self._overlaps_told = 0
        self._children_killed = 0
        self._workers_killed = 0
        self._began = time.monotonic()

    def play(self) -> Tally:
        """Play all acts, let everything come to rest, and count."""
        acts = {Trouble.SLOW: self._outlast, Trouble.CHILD: self._kill_children, Trouble.WORKER: self._kill_workers}
        self._say_what_stands()
        for trouble, act in acts.items():
            for order in self._orders:
                if order.trouble is trouble:
                    self._caller.send(order)
                    act(order)
        self._come_to_rest()
        return self._count()

    def _say_what_stands(self) -> None:
        self._narrator.say(
            f"{WORKERS} workers with {POOL} processes each are ready; broker: {self._stage.broker_name}; "
            f"ledger: {self._stage.ledger_name}"
        )

    def _outlast(self, order: Order) -> None:
        """Wait until the broker has delivered this order again, for both tasks, while its body runs."""
        tasks = self._stage.shop.tasks
        self._until(
            lambda: (
                all(self._journal.overlap(task, order.number) for task in tasks) or self._caller.has_answers_for(order)
            )
        )

    def _kill_children(self, order: Order) -> None:
        self._in_the_middle(order, self._kill_child)

    def _kill_workers(self, order: Order) -> None:
        before = [worker.pid for worker in self._stage.workers]
        self._in_the_middle(order, self._kill_worker)
        for worker, pid in zip(self._stage.workers, before, strict=True):
            if worker.pid != pid:
                self._await_return(worker)

    def _in_the_middle(self, order: Order, kill: Callable[[Worker, Run], None]) -> None:
        """Strike once in each task, as soon as its body has charged *order* and goes on."""
        waiting = list(self._stage.shop.tasks)

        def strike() -> bool:
            for task in tuple(waiting):
                run = self._journal.running(task, order.number)
                worker = self._worker_of(run) if run else None
                if run and worker:
                    kill(worker, run)
                    waiting.remove(task)
            return not waiting or self._caller.has_answers_for(order)

        self._until(strike)

    def _kill_child(self, worker: Worker, run: Run) -> None:
        if self._strike(worker, run, "child_killed", [run.pid]):
            worker.kill_child(run.pid)
            self._children_killed += 1
            self._tell_kill(f"pool process {run.pid}", run)
        worker.resume()

    def _kill_worker(self, worker: Worker, run: Run) -> None:
        tree = [worker.pid, *worker.children()]
        if self._strike(worker, run, "worker_killed", tree):
            worker.kill()
            self._workers_killed += 1
            self._tell_kill(f"worker {worker.name} with its {len(tree) - 1} pool processes", run)
            worker.start()
        else:
            worker.resume()

    def _await_return(self, worker: Worker) -> None:
        self._until(lambda: worker.is_ready() or not worker.is_running, seconds=BOOT_SECONDS)
        worker.wait_ready(seconds=0)
        self._narrator.say(f"worker {worker.name}, started again, is ready")

    def _strike(self, worker: Worker, run: Run, death: Death, pids: Sequence[int]) -> bool:
        """Freeze *worker*, and note the deaths if the body still runs, so that the journal is never behind."""
        worker.pause()
        self._journal.read()
        if run.over:
            return False
        for pid in pids:
            self._journal.note(Fact(what=death, pid=pid))
        return True

    def _tell_kill(self, victim: str, run: Run) -> None:
        self._narrator.say(f"killed {victim} in the middle of charging order {run.order} ({run.task})")

    def _worker_of(self, run: Run) -> Worker | None:
        return next((worker for worker in self._stage.workers if run.pid in worker.children()), None)

    def _come_to_rest(self) -> None:
        """Wait until everything is answered and the broker is empty; give up when nothing moves any more."""
        self._caller.hurry()
        answered, moved = -1, time.monotonic()

        def rests() -> bool:
            nonlocal answered, moved
            total = self._caller.answered.total()
            if total != answered:
                answered, moved = total, time.monotonic()
            done = self._caller.is_done and self._stage.is_quiet()
            return done or time.monotonic() - moved > REST_SECONDS

        self._until(rests, seconds=None)
        for worker in self._stage.workers:
            worker.stop()
        self._journal.read()

    def _until(self, condition: Callable[[], bool], *, seconds: float | None = ACT_SECONDS) -> None:
        """Go on sending and telling until *condition* holds, or its time is over."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            self._caller.step()
            self._journal.read()
            self._tell_overlaps()
            self._narrator.progress(self._caller.answered.total(), 2 * len(self._stage.shop.tasks) * len(self._orders))
            if condition() or (end is not None and time.monotonic() > end):
                return
            time.sleep(LOOK_EVERY)

    def _tell_overlaps(self) -> None:
        for fact in self._journal.overlaps[self._overlaps_told :]:
            self._narrator.say(f"the message of order {fact.order} came again while its body runs ({fact.task})")
        self._overlaps_told = len(self._journal.overlaps)

    def _count(self) -> Tally:
        columns = [
            count_column(
                task, orders=len(self._orders), charges=judge.count(), journal=self._journal, caller=self._caller
            )
            for task, judge in self._stage.charges.items()
        ]
        return Tally(
            columns=columns,
            repeated_early=self._caller.repeated_early,
            repeated_late=self._caller.repeated_late,
            children_killed=self._children_killed,
            workers_killed=self._workers_killed,
            broker_waits=is_redis(self._stage.place.broker),
            seconds=time.monotonic() - self._began,
        )
