"""A short soak with a fixed seed, and long ones."""

import io
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from effectonce.lab import soak
from effectonce.lab.narrator import PlainNarrator
from effectonce.lab.process_tree import descendants, is_alive, wait_until
from effectonce.lab.soak.plan import ALL, System


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where soaks have their folders, readable for PostgreSQL's account; nothing may be left in it."""
    with tempfile.TemporaryDirectory(prefix="effectonce-soaks-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        monkeypatch.setattr("tempfile.tempdir", name)
        yield folder
        assert [each for each in folder.iterdir() if not each.name.startswith("effectonce-found-")] == []


def test_a_short_soak_doubles_nothing_loses_nothing_and_leaves_nothing() -> None:
    told = io.StringIO()
    soaked = soak.run(
        minutes=0, seed=5, narrator=PlainNarrator(told), systems=[System(broker="redis", store="redis")], seconds=6.0
    )
    assert soaked.is_clean, soaked.to_json()
    assert soaked.effects >= 8
    assert soaked.struck.total() >= 2
    assert "round 1: redis + redis" in told.getvalue()


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
def test_every_system_is_soaked(seed: int) -> None:
    soaked = soak.run(minutes=60, seed=seed, narrator=PlainNarrator(io.StringIO()), rounds=len(ALL))
    assert soaked.is_clean, soaked.to_json()


@pytest.mark.soak
def test_without_a_guard_the_judge_finds_doubles() -> None:
    system = System(broker="redis", store="postgresql")
    narrator = PlainNarrator(io.StringIO())
    soaked = soak.run(minutes=0, seed=1, narrator=narrator, systems=[system], seconds=20.0, guards=False)
    assert any(outcome.doubled for outcome in soaked.outcomes)
    assert soaked.bound is None


def test_a_soak_that_is_stopped_leaves_nothing(folder: Path) -> None:
    program = Path(sys.executable).with_name("effectonce")
    with subprocess.Popen(
        [program, "lab", "--soak", "5"],
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as run:
        assert run.stdout
        assert "round 1" in run.stdout.readline()
        assert wait_until(lambda: bool(list(folder.glob("*/*/log"))), seconds=60), "a server has started"
        tree = descendants(run.pid)
        run.send_signal(signal.SIGINT)
        told = run.stdout.read()
        assert run.wait(60) == 128 + signal.SIGINT
    assert "stopped; all that the soak had started is gone" in told
    assert not any(is_alive(pid) for pid in tree)
