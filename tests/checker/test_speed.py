"""The checker is fast enough to run before each commit."""

import time
from pathlib import Path

import celery
import pytest

from effectonce.checker import project
from effectonce.checker.options import Options
from effectonce.checker.run import check
from effectonce.checker.source import Broken, Source, parse
from tests.checker import crowd

CELERY = Path(celery.__file__).parent
LEAST_LINES_A_SECOND = 40_000
SLACK = 4
"""How much slower a busy machine may be than the promise; the measured figures stand in the documentation."""


class Clock:
    def __init__(self) -> None:
        self.parsing = 0.0
        self.lines = 0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Counts the processor's time that parsing takes, and the lines that are parsed."""
    kept = Clock()

    def timed(source: Source) -> object:
        began = time.process_time()
        tree = parse(source)
        kept.parsing += time.process_time() - began
        kept.lines += len(source.lines)
        assert not isinstance(tree, Broken)
        return tree

    monkeypatch.setattr(project, "parse", timed)
    return kept


def test_celerys_own_source_is_checked_in_two_seconds_and_nothing_is_found(clock: Clock) -> None:
    began = time.process_time()
    found = check([CELERY], Options(root=CELERY))
    spent = time.process_time() - began
    assert found == []
    assert clock.lines > 40_000
    assert spent < 2.0 * SLACK
    assert clock.lines / (spent - clock.parsing) > LEAST_LINES_A_SECOND / SLACK


def test_code_that_is_nothing_but_tasks_is_followed_quickly(clock: Clock, tmp_path: Path) -> None:
    """It is slower than other code, since each task is followed; the measured figures stand in the documentation."""
    crowd.write(tmp_path, modules=20)
    began = time.process_time()
    found = check([tmp_path], Options(root=tmp_path))
    spent = time.process_time() - began
    assert {each.code for each in found} == {"EO202"}
    assert clock.lines > 8_000
    assert clock.lines / (spent - clock.parsing) > LEAST_LINES_A_SECOND / SLACK / 2
