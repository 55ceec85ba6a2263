"""Messages that come so late that their effect may have been forgotten."""

import pytest

from effectonce.domain.claims import Granted
from effectonce.domain.overdue import due_at, is_overdue, proves_nothing


@pytest.mark.parametrize(
    ("due", "now", "keep", "late"),
    [
        (100.0, 160.0, 60.0, False),
        (100.0, 160.1, 60.0, True),
        (100.0, 90.0, 60.0, False),
        (None, 1e9, 60.0, False),
        (100.0, 1e9, None, False),
        (0.0, 61.0, 60.0, True),
    ],
)
def test_late_is_later_than_entries_live(due: float | None, now: float, keep: float | None, late: bool) -> None:
    assert is_overdue(due=due, now=now, keep=keep) is late


@pytest.mark.parametrize(
    ("sent", "eta", "due"),
    [(1.0, 5.0, 5.0), (5.0, 1.0, 5.0), (5.0, None, 5.0), (None, 1.0, 1.0), (None, None, None), (0.0, None, 0.0)],
)
def test_a_message_is_due_when_it_was_sent_or_at_its_eta(
    sent: float | None, eta: float | None, due: float | None
) -> None:
    assert due_at(sent, eta) == due


@pytest.mark.parametrize(
    ("attempts", "takeover", "nothing"), [(1, False, True), (2, False, False), (2, True, True), (1, True, True)]
)
def test_a_first_claim_and_a_takeover_prove_that_nothing_is_done(attempts: int, takeover: bool, nothing: bool) -> None:
    granted = Granted(digest=b"d", attempt=b"a", fence=1, takeover=takeover, deaths=0, attempts=attempts)
    assert proves_nothing(granted) is nothing
