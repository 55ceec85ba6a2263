"""When a delivery that may not run now looks again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectonce.domain.deferral import CAP, away_delay, backoff, busy_delay

JITTERS = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize(
    ("deferrals", "seconds"), [(0, 1.0), (1, 2.0), (2, 4.0), (5, 32.0), (6, 60.0), (7, 60.0), (10_000, 60.0)]
)
def test_without_a_lease_to_wait_for_it_waits_twice_as_long_each_time(deferrals: int, seconds: float) -> None:
    assert backoff(deferrals) == seconds
    capped = min(seconds, CAP / 1.25)
    assert busy_delay(wait=None, deferrals=deferrals, jitter=0.0) == capped
    assert away_delay(deferrals=deferrals, jitter=0.0) == capped


@pytest.mark.parametrize(
    ("wait", "deferrals", "seconds"),
    [(7.5, 0, 7.5), (7.5, 20, 48.0), (30.0, 3, 30.0), (0.0, 0, 0.25), (0.0, 1, 0.5), (0.0, 3, 2.0), (0.0, 6, 16.0)],
)
def test_it_waits_for_the_end_of_the_lease_and_longer_when_that_has_not_helped(
    wait: float, deferrals: int, seconds: float
) -> None:
    assert busy_delay(wait=wait, deferrals=deferrals, jitter=0.0) == seconds


@given(wait=st.floats(0, 1000), deferrals=st.integers(0, 100), jitter=JITTERS, cap=st.floats(1, 100))
def test_jitter_goes_upwards_and_never_beyond_what_the_broker_holds(
    wait: float, deferrals: int, jitter: float, cap: float
) -> None:
    plain = busy_delay(wait=wait, deferrals=deferrals, jitter=0.0, cap=cap)
    spread = busy_delay(wait=wait, deferrals=deferrals, jitter=jitter, cap=cap)
    assert plain <= spread <= plain * 1.25
    assert 0.25 <= spread <= cap * 1.000001
    assert away_delay(deferrals=deferrals, jitter=jitter, cap=cap) <= cap * 1.000001


def test_half_of_the_jitter_is_an_eighth_more() -> None:
    assert busy_delay(wait=8.0, deferrals=0, jitter=0.5) == 9.0
    assert away_delay(deferrals=3, jitter=0.5) == 9.0
    assert away_delay(deferrals=6, jitter=0.0, cap=10.0) == 8.0
