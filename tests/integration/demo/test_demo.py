"""`effectonce demo` as a person runs it: a process of its own, with a folder for temporary files of its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
import sqlalchemy as sa

from effectonce.lab.process_tree import descendants, is_alive, wait_until

PROGRAM = Path(sys.executable).with_name("effectonce")
FEW = ["--orders", "5"]


class Demo:
    """A demo that runs; *lines* are what it has said so far."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        folder.mkdir()
        self._process = subprocess.Popen(
            [PROGRAM, "demo", *words],
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []

    def read_until(self, words: str) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self.lines.append(line)
            if words in line:
                return
        pytest.fail(f"the demo did not say {words!r}:\n{self.text}")

    def end(self) -> int:
        assert self._process.stdout
        self.lines += self._process.stdout
        return self._process.wait(30)

    def tree(self) -> list[int]:
        return descendants(self._process.pid)

    def broker(self) -> int:
        """The embedded server, which is the child that writes `valkey.log`."""
        log = next(self.folder.glob("effectonce-demo-*/valkey.log")).read_text()
        found = re.search(r"pid=(\d+)", log)
        assert found, log
        assert int(found.group(1)) in self.tree()
        return int(found.group(1))

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def row(self, name: str) -> list[int]:
        found = re.search(rf"^{name} +(\d+) +(\d+)$", self.text, re.MULTILINE)
        assert found, self.text
        return [int(number) for number in found.groups()]

    def number(self, pattern: str) -> int:
        found = re.search(pattern, self.text)
        assert found, self.text
        return int(found.group(1))


@pytest.fixture
def demos(tmp_path: Path) -> Iterator[list[Demo]]:
    started: list[Demo] = []
    yield started
    for demo in started:
        demo.close()


@pytest.fixture
def run(demos: list[Demo], tmp_path: Path) -> "Starter":
    return Starter(demos, tmp_path)


class Starter:
    """Starts demos that end with their test."""

    def __init__(self, demos: list[Demo], folder: Path) -> None:
        self._demos = demos
        self._folder = folder

    def __call__(self, *words: str) -> Demo:
        demo = Demo(self._folder / f"tmp-{len(self._demos)}", *words)
        self._demos.append(demo)
        return demo


def assert_shown(demo: Demo) -> None:
    """The table and the lines say what a demo is for: the plain task charges twice, the guarded one does not."""
    assert demo.row("orders") == [5, 5]
    assert demo.row("messages sent") == [10, 10]
    assert demo.row("charges")[0] > 5
    assert demo.row("charges")[1] == 5
    assert demo.row("charged twice")[0] > 0
    assert demo.row("charged twice")[1] == 0
    assert demo.row("lost") == [0, 0]
    assert demo.row("bodies run")[1] >= 5
    assert demo.number(r"repeated by the caller: (\d+) messages") == 10
    assert demo.number(r"pool processes killed: (\d+);") == 2
    assert demo.number(r"pool processes killed: .*bodies broken off: .*guarded (\d+)\)") == 1
    assert demo.number(r"workers killed whole and started again: (\d+);") >= 1
    assert demo.number(r"workers killed whole .*bodies broken off: .*guarded (\d+)\)") >= 1
    assert "guarded: every one of the 5 orders was charged once" in demo.text


def test_a_demo_shows_doubles_of_the_plain_task_and_none_of_the_guarded(run: Starter) -> None:
    demo = run(*FEW)
    demo.read_until("are ready")
    tree = demo.tree()
    assert len(tree) >= 1 + 1 + 2 * 3
    assert demo.end() == 0, demo.text
    assert_shown(demo)
    assert demo.number(r"while the first body still ran: (\d+)") >= 1
    assert not any(is_alive(pid) for pid in tree)
    assert list(demo.folder.iterdir()) == []


def test_a_demo_on_given_servers_leaves_nothing_in_them(run: Starter, redis_url: str, postgresql_url: str) -> None:
    demo = run(*FEW, "--broker", redis_url, "--ledger", postgresql_url)
    assert demo.end() == 0, demo.text
    assert_shown(demo)
    with redis.Redis.from_url(redis_url) as client:
        assert client.keys("*") == []
    engine = sa.create_engine(postgresql_url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        schemas = connection.execute(sa.text("select nspname from pg_namespace")).scalars().all()
    assert [name for name in schemas if "effectonce" in name] == []
    password = sa.make_url(postgresql_url).password
    assert password is None or str(password) not in demo.text


@pytest.mark.soak
def test_a_demo_runs_on_rabbitmq_and_keeps_a_file_that_was_named(run: Starter, amqp_url: str, tmp_path: Path) -> None:
    file = tmp_path / "kept.db"
    demo = run(*FEW, "--broker", amqp_url, "--ledger", f"sqlite:///{file}")
    assert demo.end() == 0, demo.text
    assert_shown(demo)
    engine = sa.create_engine(f"sqlite:///{file}", poolclass=sa.NullPool)
    with engine.connect() as connection:
        assert connection.execute(sa.text("select count(*) from effectonce_demo_charges_guarded")).scalar() == 5


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGINT, "are ready"),
        (signal.SIGINT, "killed pool process"),
        (signal.SIGINT, "killed worker"),
        (signal.SIGTERM, "killed pool process"),
    ],
)
def test_a_demo_that_is_stopped_leaves_no_process_and_no_folder(
    run: Starter, number: signal.Signals, moment: str
) -> None:
    demo = run(*FEW)
    demo.read_until(moment)
    tree = demo.tree()
    assert len(list(demo.folder.iterdir())) == 1
    demo.send(number)
    assert demo.end() == 128 + number, demo.text
    assert "stopped; all that the demo had started is gone" in demo.text
    assert not any(is_alive(pid) for pid in tree)
    assert list(demo.folder.iterdir()) == []


def test_a_demo_that_is_stopped_while_it_starts_leaves_nothing(run: Starter) -> None:
    demo = run(*FEW)
    demo.read_until("each message is sent twice")
    demo.send(signal.SIGINT)
    demo.send(signal.SIGINT)
    assert demo.end() == 128 + signal.SIGINT, demo.text
    assert list(demo.folder.iterdir()) == []


def test_a_demo_that_is_killed_leaves_nothing_either(run: Starter) -> None:
    demo = run(*FEW)
    demo.read_until("are ready")
    tree = demo.tree()
    demo.send(signal.SIGKILL)
    demo.end()
    assert wait_until(lambda: not any(is_alive(pid) for pid in tree))
    assert wait_until(lambda: not list(demo.folder.iterdir()))


def test_a_demo_whose_broker_dies_says_so_and_leaves_nothing(run: Starter) -> None:
    demo = run(*FEW)
    demo.read_until("are ready")
    tree = demo.tree()
    os.kill(demo.broker(), signal.SIGKILL)
    assert demo.end() == 1, demo.text
    assert "a server of the demo went away" in demo.text
    assert "Traceback" not in demo.text
    assert wait_until(lambda: not any(is_alive(pid) for pid in tree))
    assert list(demo.folder.iterdir()) == []


def test_a_stopped_demo_takes_its_names_out_of_given_servers(run: Starter, redis_url: str, postgresql_url: str) -> None:
    demo = run(*FEW, "--broker", redis_url, "--ledger", postgresql_url)
    demo.read_until("came again")
    demo.send(signal.SIGINT)
    assert demo.end() == 128 + signal.SIGINT, demo.text
    with redis.Redis.from_url(redis_url) as client:
        assert client.keys("*") == []
    engine = sa.create_engine(postgresql_url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        schemas = connection.execute(sa.text("select nspname from pg_namespace")).scalars().all()
    assert [name for name in schemas if "effectonce" in name] == []
