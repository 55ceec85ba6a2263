"""What a scenario says to a trial: begin, send, wait, kill, rest."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

import redis

from effectonce.lab.addresses import is_redis
from effectonce.lab.process_tree import is_alive, wait_until
from effectonce.lab.processes import Process, Worker
from effectonce.lab.trials.app import Laboratory, open_laboratory
from effectonce.lab.trials.diary import Moment, now
from effectonce.lab.trials.faults import mark_of
from effectonce.lab.trials.scene import Scene
from effectonce.lab.trials.verdict import ENDED, MISTOLD, Call, Outcome

PATIENCE: Final = 40.0
"""Seconds for something to happen that must."""
MINUTE: Final = 60
BEAT_SECONDS: Final = 20
"""Time for a beat to start."""
GIVE_UP: Final = 8.0
"""Seconds of complete rest after which nothing more is expected."""


class NeverHappened(Exception):
    """What the scenario waits for did not come: the trial says nothing of the contender."""


class Trial:
    """One scenario for one contender."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.calls: list[Call] = []
        self.expected: Counter[str] = Counter()
        self.most_bodies = 30
        self._laboratory: Laboratory | None = None

    @property
    def lab(self) -> Laboratory:
        """The caller's own view; `begin` makes it."""
        if self._laboratory is None:
            message = "a scenario begins with begin()"
            raise RuntimeError(message)
        return self._laboratory

    @property
    def is_ours(self) -> bool:
        """Tell whether the contender is effectonce: for faces that others do not have."""
        return self.scene.place.contender == "effectonce"

    def begin(self, workers: int = 1, *, pool: int = 2, **place: Any) -> None:
        """Make the place as told, and start workers; they are ready when it returns. The caller has no *fault*."""
        self.scene.place = replace(self.scene.place, **place)
        if self._laboratory is None:
            self._laboratory = open_laboratory(replace(self.scene.place, fault=""))
            self.scene.undo.callback(self.lab.effects.drop)
            self.lab.effects.create()
            self.scene.undo.callback(self.lab.contender.close)
            self.lab.contender.create()
        self.add_workers(workers, pool=pool)

    def add_workers(self, number: int = 1, *, pool: int = 2, options: Iterable[str] = (), **place: Any) -> list[Worker]:
        """Start more, in a place that may differ."""
        added = [self.scene.worker(pool=pool, options=tuple(options), **place) for _ in range(number)]
        for worker in added:
            worker.wait_ready()
            self.note("started", pid=worker.pid, text=worker.name)
        return added

    def note(self, what: str, *, pid: int = 0, intent: str = "", message: str = "", text: str = "") -> None:
        """Write into the diary, as the caller."""
        self.lab.diary.note(what, pid=pid, intent=intent, message=message, text=text)

    def send(self, task: str, *args: Any, intent: str | None = None, times: int = 1, **options: Any) -> str:
        """Send one message as a caller does; answers its id. *intent* should take effect *times* times in the end."""
        return self.call(lambda: self.lab.tasks[task].apply_async(args, **options), str(intent or args[0]), times=times)

    def call(
        self, act: Callable[[], Any], intent: str, *, times: int = 1, may_fail: bool = False, told: bool = True
    ) -> str:
        """Carry out *act*, which sends; a refusal is part of what is measured.

        Its answer is not looked for unless it is *told*, as one of Celery's results.
        """
        self.expected[intent] = max(times, self.expected[intent])
        try:
            message = getattr(act(), "id", None)
        except Exception as error:  # noqa: BLE001 - whatever a contender raises
            self.note("refused", intent=intent, text=type(error).__name__)
            self.calls.append(Call(intent=intent, message="", refused=type(error).__name__, may_fail=may_fail))
            return ""
        state = "PENDING" if message and told else "SUPPRESSED"
        self.note("sent" if message else "suppressed", intent=intent, message=message or "")
        self.calls.append(Call(intent=intent, message=message or "", state=state, may_fail=may_fail))
        return message or ""

    def must_get(self, message: str, result: str) -> None:
        """Say what the caller of *message* has to be told in the end."""
        self.calls = [replace(each, wanted=result) if each.message == message else each for each in self.calls]

    def may_fail(self, message: str) -> None:
        """Say that this caller may rightly be told of a failure."""
        self.calls = [replace(call, may_fail=call.may_fail or call.message == message) for call in self.calls]

    def calls_may_stay(self, message: str) -> None:
        """Say that this caller may rightly wait for ever: its message is gone, and it knows."""
        self.calls = [replace(each, state="SUPPRESSED") if each.message == message else each for each in self.calls]

    def send_again_unless_done(self, first: str, task: str, *args: Any, patience: float = 0.0) -> None:
        """Send once more if the first caller was told of a failure, or of nothing for *patience* seconds."""
        wait_until(lambda: self.state_of(first) in ENDED, seconds=patience)
        if self.state_of(first) != "SUCCESS":
            self.send(task, *args)

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)

    def wait_quiet(self, message: str) -> None:
        """Wait for the answer to *message*, or until nothing moves: an answer may never come."""
        still = [time.monotonic()]

        def over() -> bool:
            if self._moves():
                still[0] = time.monotonic()
            return self.state_of(message) in ENDED or time.monotonic() - still[0] > GIVE_UP

        wait_until(over, seconds=PATIENCE / 2)  # a dead worker's message stays where it is

    def wait_began(self, intent: str) -> Moment:
        """Wait until a body of *intent* runs; answers its beginning."""
        found: list[Moment] = []

        def began() -> bool:
            found[:] = [each for each in self.lab.diary.running() if each.intent == intent]
            return bool(found)

        self.wait(began, f"a body of {intent}")
        return found[0]

    def await_minute(self) -> None:
        """Wait until there is time for a beat to start before the next minute begins."""
        self.wait(lambda: now() % MINUTE < MINUTE - BEAT_SECONDS, "the next minute")

    def wait_tick(self) -> None:
        """Wait for the first tick, which should take effect once until `finish_minute`."""
        self.expected["tick"] = 1
        self.wait(lambda: self.lab.effects.count()["tick"] > 0, "a tick", seconds=MINUTE + BEAT_SECONDS)

    def finish_minute(self, seconds: float) -> None:
        """Let *seconds* of the tick's minute pass, and end all beats before the next one begins."""
        minute = now() // MINUTE
        self.pause(seconds)
        for beat in self.scene.beats:
            beat.kill()
        if now() // MINUTE != minute:
            message = "a tick early enough in its minute"
            raise NeverHappened(message)
        self.rest()

    def restart_beat(self, beat: Process) -> None:
        """Start a beat again that has died, and wait until it works."""
        beat.start()
        self.wait(lambda: "Starting" in beat.log_text(), "the beat's start")

    def kill_beat(self, beat: Process) -> None:
        """Kill a beat."""
        self.note("killed", pid=beat.pid, text="SIGKILL to a beat")
        beat.kill()

    def wait(self, condition: Callable[[], bool], what: str, *, seconds: float = PATIENCE) -> None:
        """Wait until *condition* holds; raise NeverHappened with *what* when it does not in time."""
        if not wait_until(condition, seconds=seconds):
            raise NeverHappened(what)

    def wait_acting(self, intent: str) -> Moment:
        """Wait until a body of *intent* has done its part and goes on; answers its beginning."""
        found: list[Moment] = []

        def acting() -> bool:
            pids = {each.pid for each in self.lab.diary.read() if each.what == "acted" and each.intent == intent}
            found[:] = [each for each in self.lab.diary.running() if each.intent == intent and each.pid in pids]
            return bool(found)

        self.wait(acting, f"a body of {intent}")
        return found[0]

    def wait_takeover(self, intent: str) -> None:
        """Wait until another body of *intent* has acted: ours must, a lock may refuse it for an hour."""
        acted = wait_until(lambda: self.lab.diary.count("acted", intent) > 0, seconds=PATIENCE if self.is_ours else 20)
        if self.is_ours and not acted:
            message = f"a takeover of {intent}"
            raise NeverHappened(message)

    def wait_answer(self, message: str, *, seconds: float = PATIENCE) -> None:
        """Wait until the caller of *message* has an answer, and a second more: a lock goes after its answer."""
        if message:
            self.wait(lambda: self.state_of(message) in ENDED, f"an answer to {message}", seconds=seconds)
            self.pause(1)

    def state_of(self, message: str) -> str:
        """What the result backend says."""
        return str(self.lab.app.backend.get_state(message))

    def worker_of(self, moment: Moment) -> Worker:
        """The worker in whose pool something happened."""
        found = next((each for each in self.scene.workers if each.is_running and moment.pid in each.children()), None)
        if found is None:
            message = f"the worker of process {moment.pid}"
            raise NeverHappened(message)
        return found

    def kill_child(self, moment: Moment) -> None:
        """Kill the pool process that runs a body."""
        self.note("killed", pid=moment.pid, text="SIGKILL to the pool process")
        self.worker_of(moment).kill_child(moment.pid)

    def kill_worker(self, worker: Worker) -> None:
        """Kill a worker whole."""
        tree = [worker.pid, *worker.children()]
        worker.pause()
        for pid in tree:
            self.note("killed", pid=pid, text="SIGKILL to the whole worker")
        worker.kill()

    def send_from_process(self, task: str, *args: Any, fault: str, intent: str) -> None:
        """Let another process send, which dies at *fault*."""
        self.expected[intent] = max(1, self.expected[intent])
        command = [sys.executable, "-m", "effectonce.lab.trials.caller", task, *args]
        env = {**os.environ, **self.scene.place.environment(fault=fault)}
        done = subprocess.run(command, env=env, cwd=self.scene.folder, check=False, capture_output=True)
        if done.returncode >= 0:
            message = f"the caller's death ({done.stderr.decode()[-300:]})"
            raise NeverHappened(message)

    def rest(self, *, calm: float = 0.8, seconds: float = PATIENCE, unless: Callable[[], bool] = lambda: False) -> None:
        """Wait until all is answered and nothing moves for *calm* seconds, or nothing moves any more at all."""
        quiet_since = time.monotonic()
        deadline = quiet_since + seconds
        while time.monotonic() < deadline and not unless():
            if self._moves():
                quiet_since = time.monotonic()
            quiet = time.monotonic() - quiet_since
            if quiet > (calm if self._answered() else max(GIVE_UP, calm)):
                return
            time.sleep(0.1)

    def outcome(self) -> Outcome:
        """What was counted; raises NeverHappened when nobody has died where the place says."""
        if self.scene.place.fault and not mark_of(self.scene.place).exists():
            message = f"a death at: {self.scene.place.fault}"
            raise NeverHappened(message)
        self._answered()
        return Outcome(
            expected=dict(self.expected),
            effects=dict(self.lab.effects.count()),
            bodies=dict(self.lab.diary.bodies()),
            calls=tuple(self.calls),
            most_bodies=self.most_bodies,
        )

    def _answered(self) -> bool:
        self.calls = [
            replace(call, state=self._told(call)) if call.message and call.state not in ENDED else call
            for call in self.calls
        ]
        return all(call.refused or call.state in ENDED for call in self.calls)

    def _told(self, call: Call) -> str:
        state = self.state_of(call.message)
        if state == "SUCCESS" and call.wanted not in {None, self.lab.app.backend.get_result(call.message)}:
            return MISTOLD
        return state

    def _moves(self) -> bool:
        return any(is_alive(each.pid) for each in self.lab.diary.running()) or self._messages() > 0

    def _messages(self) -> int:
        """How many messages the broker holds; RabbitMQ does not tell of those that workers have."""
        place = self.scene.place
        if is_redis(place.broker):
            with redis.Redis.from_url(self.scene.broker_url) as client:
                try:
                    return int(client.llen(place.name)) + int(client.hlen("unacked"))
                except redis.RedisError:
                    return 1
        with self.lab.app.connection_for_read() as connection:
            return int(connection.channel().queue_declare(place.name, passive=True).message_count)
