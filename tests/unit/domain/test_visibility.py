"""How long a worker goes on holding a delivery at its broker."""

import pytest

from effectonce.domain.leases import Lease
from effectonce.domain.visibility import Hold, is_far, renewal_interval


def test_two_renewals_may_fail_before_the_end() -> None:
    assert renewal_interval(30.0) == 10.0
    lease = Lease.asked(100.0, length=30.0)
    assert not lease.is_due(109.9)
    assert lease.is_due(110.0)
    assert lease.is_trusted(129.9)
    assert not lease.is_trusted(130.0)


def test_a_renewal_counts_from_when_it_was_asked_and_never_shortens() -> None:
    lease = Lease.asked(100.0, length=30.0)
    assert lease.renewed(110.0).trusted_until == 140.0
    assert lease.renewed(90.0).trusted_until == 130.0


@pytest.mark.parametrize(("delay", "far"), [(2.9, False), (3.0, False), (3.1, True)])
def test_a_message_is_far_that_outlives_the_timeout(delay: float, far: bool) -> None:
    assert is_far(delay, 3.0) is far


@pytest.mark.parametrize(
    ("due", "now", "at_most", "old"),
    [
        (0.0, 70.0, 60.0, False),
        (0.0, 70.1, 60.0, True),
        (100.0, 130.0, 60.0, False),
        (100.0, 160.1, 60.0, True),
        (0.0, 1e9, None, False),
    ],
)
def test_the_age_of_a_delivery_counts_from_when_it_could_run(
    due: float, now: float, at_most: float | None, old: bool
) -> None:
    assert Hold(since=10.0, due=due).is_too_old(now, at_most=at_most) is old
