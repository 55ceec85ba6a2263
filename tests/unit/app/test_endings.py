"""A delivery that may not run its body is never acknowledged without a copy."""

from types import SimpleNamespace
from typing import Any

import pytest
from celery.exceptions import Ignore, Reject

from effectonce.app import endings
from effectonce.domain.claims import Busy
from effectonce.domain.deliveries import Delivery
from effectonce.errors import LedgerUnavailable
from effectonce.runtime.signals import Fenced


def frame() -> Any:
    """As much of one as these endings look at."""
    once = SimpleNamespace(longest_delay=60.0, confirmed=None, away_delay=lambda _: 1.0)
    return SimpleNamespace(
        delivery=Delivery(task="charge", task_id="id", deferrable=True),
        claim=SimpleNamespace(key="charge:1", lease=2.0, digest=b"d"),
        guard=SimpleNamespace(once=once, policy=SimpleNamespace(on_busy="skip"), happened=lambda *_, **__: None),
        ledger=None,
        task=None,
        request=None,
        comes_again=False,
    )


ENDINGS = {
    "a holder that slept": lambda frame: endings.fenced(frame, Fenced()),
    "a ledger that is away": lambda frame: endings.away(frame, LedgerUnavailable(ledger="l", reason="gone")),
    "a busy key of its own": lambda frame: endings.refused(frame, Busy(wait=1.0, own=True)),
}


@pytest.mark.parametrize("end", ENDINGS.values(), ids=ENDINGS)
def test_a_delivery_ends_when_its_copy_is_with_the_broker_and_not_before(
    end: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[dict[str, Any]] = []
    monkeypatch.setattr(endings, "put_off", lambda *_, **options: copies.append(options))
    with pytest.raises(Ignore, match="a copy of this message comes"):
        end(frame())
    assert len(copies) == 1

    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(endings, "put_off", refuse)
    with pytest.raises(Reject) as rejected:
        end(frame())
    assert rejected.value.requeue is True
