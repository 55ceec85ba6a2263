"""Crews of workers on Redis databases of their own; they start side by side and end with their test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from effectonce.lab.reaper import Reaper
from tests.integration.visibility.crew import Crew
from tests.integration.visibility.sentinel import Sentinel
from tests.integration.visibility.sqs import Sqs
from tests.services import Fleet

Hire = Callable[..., Crew]


@pytest.fixture
def hire(fleet: Fleet, tmp_path: Path) -> Iterator[Hire]:
    """Make a crew by name; its database is emptied at the end."""
    crews: list[tuple[Crew, str]] = []

    def make(name: str, **options: Any) -> Crew:
        url = fleet.redis().fresh_url()
        through = options.pop("broker", lambda given: given)
        crew = Crew(name, through(url), tmp_path, database=url, **options)
        crews.append((crew, url))
        return crew

    yield make
    for crew, url in crews:
        crew.close()
        fleet.redis().put_back(url)


@pytest.fixture
def through_sentinel(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Turn the address of a database into one that asks a Sentinel first; the option `master_name` goes with it."""
    started: list[Sentinel] = []
    reaper = Reaper()

    def turn(url: str) -> str:
        sentinel = Sentinel(tmp_path / "sentinel", url, reaper=reaper)
        sentinel.start()
        started.append(sentinel)
        return sentinel.url

    yield turn
    for sentinel in started:
        sentinel.kill()
    reaper.close()


@pytest.fixture
def open_sqs() -> Iterator[Callable[[], Sqs]]:
    """Start one more stand-in for SQS."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Sqs())


@pytest.fixture
def sqs(open_sqs: Callable[[], Sqs]) -> Sqs:
    """A stand-in for SQS."""
    return open_sqs()
