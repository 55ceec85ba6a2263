"""The tutorial is followed to the letter: its files, its commands, and what it says that one sees."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from effectonce.lab.process_tree import wait_until
from effectonce.lab.processes import Process, Worker

PAGES = Path(__file__).parents[2] / "docs" / "tutorial"


class Reader:
    """Somebody at *page*, in a folder of their own, whose Redis is at another address."""

    def __init__(self, page: str, folder: Path, redis_url: str) -> None:
        self.folder, self._started = folder, list[Process]()
        self._text = (PAGES / page).read_text()
        for name, code in re.findall(
            r"^`(\w+\.py)`:\n\n```python\n(.*?)```", self._text, flags=re.DOTALL | re.MULTILINE
        ):
            (folder / name).write_text(code.replace("redis://localhost", redis_url))

    @property
    def commands(self) -> list[str]:
        """What is to be typed, a line each."""
        return [
            line for block in re.findall(r"```sh\n(.*?)```", self._text, flags=re.DOTALL) for line in block.splitlines()
        ]

    @property
    def seen(self) -> list[str]:
        """What one is said to see."""
        return re.findall(r"```text\n(.*?)```", self._text, flags=re.DOTALL)

    def types(self, start: str) -> str:
        """Type the command of the page that begins like this; answers what it prints."""
        command = next(line for line in self.commands if line.startswith(start))
        words = command.replace("python ", f"{sys.executable} ", 1).replace(
            "celery ", f"{sys.executable} -m celery ", 1
        )
        done = subprocess.run(  # noqa: S602 - a command of our own page, as it is typed
            words, shell=True, cwd=self.folder, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def starts_worker(self) -> Worker:
        """The page's worker, with a log that can be read."""
        assert "celery -A shop worker" in self.commands
        worker = Worker("shop", folder=self.folder, cwd=self.folder)
        self._started.append(worker.start().wait_ready())
        return worker

    def starts_beat(self, name: str) -> Process:
        """One of the page's beats; each has a schedule file of its own, as on a machine of its own."""
        assert "celery -A shop beat -S once" in self.commands
        command = [sys.executable, "-m", "celery", "-A", "shop", "beat", "-S", "once", "-s", f"{name}.schedule"]
        beat = Process([*command, "--pidfile="], log=self.folder / f"{name}.log", cwd=self.folder)
        self._started.append(beat.start())
        return beat

    def leaves(self) -> None:
        """End what was started."""
        for process in self._started:
            process.kill()


@pytest.fixture
def reads(tmp_path: Path, redis_url: str) -> Iterator[Callable[[str], Reader]]:
    readers = list[Reader]()

    def read(page: str) -> Reader:
        readers.append(Reader(page, tmp_path, redis_url))
        return readers[-1]

    yield read
    for reader in readers:
        reader.leaves()


def test_both_clicks_get_an_answer_and_there_is_one_row(reads: Callable[[str], Reader]) -> None:
    reader = reads("1-first-effect.md")
    reader.starts_worker()
    assert [reader.types("python customer.py"), reader.types("python -c")] == reader.seen
    assert "charge:7" in reader.types("celery -A shop once show")


def test_a_killed_worker_leaves_nothing_and_its_message_comes_again(reads: Callable[[str], Reader]) -> None:
    reader = reads("2-kill-the-worker.md")
    worker = reader.starts_worker()
    reader.types('python -c "from shop')
    assert wait_until(lambda: "the row is written" in worker.log_text(), seconds=60)
    worker.kill()
    nothing, row = reader.seen
    assert reader.types('python -c "import shop') == nothing
    reader.starts_worker()
    assert wait_until(lambda: reader.types('python -c "import shop') == row, seconds=60)


def test_a_failed_body_takes_its_message_back(reads: Callable[[str], Reader]) -> None:
    reader = reads("3-the-outbox.md")
    reader.starts_worker()
    answers, receipts = reader.seen
    assert reader.types("python customer.py") == answers
    assert wait_until((reader.folder / "receipts.txt").exists, seconds=60)
    assert wait_until(lambda: reader.types("cat receipts.txt") == receipts, seconds=60)


def test_the_second_beat_goes_on_where_the_first_one_was_killed(reads: Callable[[str], Reader]) -> None:
    reader = reads("4-two-beats.md")
    reader.starts_worker()
    beats = [reader.starts_beat("one"), reader.starts_beat("two")]

    def ticks() -> int:
        command = 'import shop; print(shop.engine.connect().execute(shop.text("select count(*) from totals")).scalar())'
        done = subprocess.run(
            [sys.executable, "-c", command], cwd=reader.folder, capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    assert wait_until(lambda: ticks() >= 1, seconds=60)
    leader = next(beat for beat in beats if f"{beat.pid}" in reader.types("celery -A shop once beat"))
    leader.kill()
    sent = ticks()
    assert wait_until(lambda: ticks() >= sent + 2, seconds=60)
    assert [reader.types("python -c")] == reader.seen


@pytest.mark.parametrize("page", sorted(path.name for path in PAGES.iterdir()))
def test_each_page_is_followed(page: str) -> None:
    """A page that nobody follows would say what is no longer so."""
    assert f'reads("{page}")' in Path(__file__).read_text(encoding="utf-8")
