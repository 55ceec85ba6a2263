"""The history that real workers write: children of a pool note, and their threads write."""

import os
import signal

import pytest

from tests.integration.worker.harness import Shop


@pytest.fixture(params=["redis+postgresql"])
def pair(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _causes(shop: Shop, key: str) -> list[tuple[str, str]]:
    entries = shop.once.entries
    return [(each.name, each.cause) for seen in entries.find(key) for each in entries.history(seen)]


def test_a_child_that_is_killed_and_a_caller_that_repeats_leave_a_timeline(shop: Shop) -> None:
    shop.start()
    shop.shut("mail-1")
    shop.send("mail", 1)
    shop.wait_at("mail-1")
    os.kill(shop.body_pid("mail:1"), signal.SIGKILL)
    shop.open("mail-1")
    shop.wait(lambda: len(shop.outside("mail:1")) == 1, "the mail is out")
    assert shop.send("mail", 1).get(timeout=60) == "mailed 1"
    shop.wait(lambda: ("effect.replayed", "caller") in _causes(shop, "mail:1"), "the repeat is written")
    # Whoever comes first once the lease has ended: the copy of the message, or the rescuer.
    gone = {"claim.taken_over", "claim.rescued"}
    shop.wait(lambda: bool(gone & {name for name, _ in _causes(shop, "mail:1")}), "the takeover is written")
