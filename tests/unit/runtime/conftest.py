"""Waiting for a thread."""

from collections.abc import Callable

import pytest

from effectonce.lab.process_tree import wait_until


@pytest.fixture
def wait() -> Callable[[Callable[[], bool]], None]:
    def wait_for(happened: Callable[[], bool]) -> None:
        assert wait_until(happened, seconds=20)

    return wait_for
