"""What a guard costs a task end to end, beside the rivals: a full queue worked off, and an open loop at a fixed rate.

All tasks have the same body and run in the same worker (prefork 2), in the order A B ... B A, so that a noisy machine
disturbs all alike; relier brings a worker of its own, which idles meanwhile. A queue is filled while nobody listens;
the clock runs from the order to listen until the last task is over. What a contender does when it sends is in
``sent_per_s``. In the open loop latency counts from the intended instant of sending. Rivals come from the registry
into a folder that is thrown away; celery-once and celery-singleton do all their work when they send and when a task
ends, celery-once-task and relier also look at the start of a body, as we do.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa

from bench.report import interleaved, progress, quantile, ratio, spread, write
from tests.services import Fleet

BROKERS = ("redis", "rabbitmq")
LEDGERS = ("postgresql", "mariadb", "sqlite", "redis")
BODIES = ("empty", "update", "10ms")
RIVALS = ("celery-once", "celery-singleton", "celery-once-task", "relier")
LONGEST = 120.0


def main(words: list[str]) -> None:
    """Measure, print a line for each; writes bench/results/rivals.json."""
    options = _options(words)
    began, fleet = os.getloadavg(), Fleet()
    rows: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        rivals = _install(Path(folder, "rivals"), options.rivals)
        try:
            for broker in options.brokers:
                for ledger in options.ledgers:
                    with Stage(fleet, broker, ledger, folder=Path(folder)) as stage:
                        missing |= stage.missing
                        for row in _rows(stage, options):
                            rows.append(row)
                            facts = {"rivals": rivals, "not_loaded": missing}
                            write("rivals", rows, began=began, asked=vars(options), **facts)
        finally:
            fleet.close()


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench rivals", description=__doc__)
    parser.add_argument("--brokers", nargs="+", default=list(BROKERS), choices=BROKERS)
    parser.add_argument("--ledgers", nargs="+", default=list(LEDGERS), choices=LEDGERS)
    parser.add_argument("--bodies", nargs="+", default=list(BODIES), choices=BODIES)
    parser.add_argument("--rivals", nargs="*", default=list(RIVALS), choices=RIVALS)
    parser.add_argument("--messages", type=int, default=1500, help="messages in each queue")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of A B B A")
    parser.add_argument("--rate", type=float, default=60.0, help="messages a second in the open loop; 0 leaves it out")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each open loop")
    return parser.parse_args(words)


def _install(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Fetch the rivals as they are now; answers their versions. None is ever in our own environment."""
    folder.mkdir()
    os.environ["BENCH_RIVALS"] = str(folder)
    if not names:
        return {}
    progress(f"installing {', '.join(names)}")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), *names]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"the rivals cannot be installed: {done.stderr[-600:]}")
    found = {each.name.replace("_", "-"): each.version for each in distributions(path=[str(folder)])}
    return {name: found[name] for name in names}


class Stage:
    """One broker, one ledger, a worker of ours and one of relier's, and the tasks as this process sends them."""

    def __init__(self, fleet: Fleet, broker: str, ledger: str, *, folder: Path) -> None:
        self.broker, self.ledger = broker, ledger
        self._folder = folder
        self._done = folder / f"done-{uuid.uuid4().hex}"
        self._done.touch()
        url = str(getattr(fleet, broker)().fresh_url())
        locks = str(fleet.redis().fresh_url())
        place = f"sqlite:///{folder}/{uuid.uuid4().hex}.sqlite"
        if ledger != "sqlite":
            place = str(getattr(fleet, ledger)().fresh_url())
        os.environ.update(BENCH_BROKER=url, BENCH_LEDGER=place, BENCH_LOCKS=locks, BENCH_DONE=str(self._done))
        os.environ.pop("RELIER_REDIS_URL", None)
        if broker == "redis":  # it has no other broker
            os.environ.update(
                RELIER_REDIS_URL=str(fleet.redis().fresh_url()),
                RELIER_ADMISSION_LIMIT="1000000",
                RELIER_OTEL_ENABLED="false",
                RELIER_LOG_LEVEL="ERROR",
            )

    def __enter__(self) -> Self:
        for name in [each for each in sys.modules if each == "bench.rivals_app" or each.split(".")[0] == "relier"]:
            del sys.modules[name]
        import bench.rivals_app as app  # noqa: PLC0415 - it reads the environment

        self._app: Any = app
        self.missing: dict[str, str] = dict(app.MISSING)
        self.tasks: dict[str, Any] = dict(app.TASKS)
        app.once.ledger.create_schema()
        if self.ledger != "redis":
            with app.once.ledger.source.engine.begin() as connection:  # type: ignore[attr-defined]
                connection.execute(sa.text("create table work_rows (id integer primary key, x integer)"))
                connection.execute(
                    sa.text("insert into work_rows values (:id, 0)"), [{"id": number} for number in range(app.ROWS)]
                )
        self._workers = [self._start("bench.rivals_app:app")]
        if "relier" in self.tasks:
            self._workers.append(self._start("bench.rivals_app:relier_app"))
        for worker, log in self._workers:
            _until_ready(worker, log)
        return self

    def __exit__(self, *_: object) -> None:
        for worker, _ in self._workers:
            worker.send_signal(signal.SIGTERM)
        for worker, _ in self._workers:
            try:
                worker.wait(15)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        self._app.once.ledger.close()

    def _start(self, app: str) -> "tuple[subprocess.Popen[bytes], Path]":
        log = self._folder / f"worker-{uuid.uuid4().hex}.log"
        command = [sys.executable, "-m", "celery", "-A", app, "worker", "-P", "prefork", "-c", "2", "-l", "INFO"]
        command += ["-Q", "idle", "--without-gossip", "--without-mingle", "-n", f"{uuid.uuid4().hex}@bench"]
        env = {**os.environ, "PYTHONPATH": str(Path.cwd())}
        with log.open("wb") as out:
            return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=env), log

    def burn(self, name: str, body: str, messages: int, sent: dict[str, list[float]] | None = None) -> float:
        """Fill a queue, let the worker listen, and answer messages a second until the last is over."""
        queue = self._queue(name)
        before, began = self._over(), time.perf_counter()
        for _ in range(messages):
            self._send(name, queue, 0.0, body)
        if sent is not None:
            sent[name].append(messages / (time.perf_counter() - began))
        began = time.perf_counter()
        self._control(name).add_consumer(queue)
        self._wait(before + messages, name)
        lasted = time.perf_counter() - began
        self._control(name).cancel_consumer(queue, reply=True)
        return messages / lasted

    def open_loop(self, name: str, body: str, rate: float, seconds: float) -> list[float]:
        """Send at a fixed rate whatever the worker does; the latencies from the intended instants."""
        queue, number, before = self._queue(name), int(rate * seconds), self._over()
        self._control(name).add_consumer(queue, reply=True)
        began = time.time() + 0.2
        for at in range(number):
            due = began + at / rate
            time.sleep(max(due - time.time(), 0))
            self._send(name, queue, due, body)
        self._wait(before + number, name)
        self._control(name).cancel_consumer(queue, reply=True)
        written = self._done.read_bytes()[before * self._app.RECORD.size :]
        return [late for (late,) in self._app.RECORD.iter_unpack(written)]

    def _queue(self, name: str) -> str:
        return str(self._app.RELIER_QUEUE) if name == "relier" else f"q-{uuid.uuid4().hex}"

    def _control(self, name: str) -> Any:
        return (self._app.relier_app if name == "relier" else self._app.app).control

    def _send(self, name: str, queue: str, due: float, body: str) -> None:
        number = uuid.uuid4().int % 2**52
        if name == "relier":
            self.tasks[name].push(number, due, body)
        else:
            self.tasks[name].apply_async((number, due, body), queue=queue)

    def _over(self) -> int:
        return self._done.stat().st_size // int(self._app.RECORD.size)

    def _wait(self, number: int, name: str) -> None:
        end = time.monotonic() + LONGEST
        while self._over() < number:
            if time.monotonic() > end:
                logs = "\n".join(log.read_text()[-3000:] for _, log in self._workers)
                sys.exit(f"{name} does not end: {self._over()} of {number}\n{logs}")
            time.sleep(0.003)


def _until_ready(worker: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + 90
    while " ready." not in log.read_text():
        if worker.poll() is not None or time.monotonic() > end:
            sys.exit(f"a worker does not start\n{log.read_text()[-3000:]}")
        time.sleep(0.05)


def _rows(stage: Stage, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for body in options.bodies:
        if body == "update" and stage.ledger == "redis":
            continue
        names = [name for name in ("bare", "effectonce", *options.rivals) if name in stage.tasks]
        if body == "update":  # a lock in Redis does not know the row; the pair that does is compared alone
            names = names[:2]
        for name in names:
            stage.burn(name, body, 20)
        messages, sent = options.messages // (2 if body == "10ms" else 1), {name: [] for name in names}
        say = f"{stage.broker}, {stage.ledger}, {body}:"
        sides = {name: partial(stage.burn, name, body, messages, sent) for name in names}
        taken = interleaved(sides, rounds=options.rounds, say=say)
        late = {name: stage.open_loop(name, body, options.rate, options.seconds) for name in names if options.rate}
        for name in names:
            row = {
                "broker": stage.broker,
                "ledger": stage.ledger,
                "body": body,
                "contender": name,
                "of_bare": ratio(taken, of=name, to="bare"),
                "per_s": spread(taken[name]),
                "sent_per_s": spread(sent[name]),
                **({"latency_ms": _latency(late[name])} if options.rate else {}),
            }
            _tell(row)
            yield row


def _latency(late: list[float]) -> dict[str, float]:
    return {f"p{share * 100:.0f}": quantile(late, share) * 1000 for share in (0.5, 0.99)}


def _tell(row: dict[str, Any]) -> None:
    progress("")
    late = row.get("latency_ms")
    told = f", p50 {late['p50']:.1f} ms, p99 {late['p99']:.1f} ms" if late else ""
    of = row["of_bare"]
    print(
        f"{row['broker']:<9}{row['ledger']:<11}{row['body']:<7}{row['contender']:<17}{of['median']:5.2f} of bare "
        f"({of['least']:.2f}-{of['most']:.2f}), {row['per_s']['median']:6.0f}/s, "
        f"sent {row['sent_per_s']['median']:6.0f}/s{told}",
        flush=True,
    )
