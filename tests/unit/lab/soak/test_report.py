"""What follows from a soak."""

import io
import json
from collections import Counter
from typing import Any

import pytest

from effectonce.lab.narrator import PlainNarrator
from effectonce.lab.soak.course import Outcome
from effectonce.lab.soak.plan import Blow
from effectonce.lab.soak.report import Soaked, show


def outcome(**changes: Any) -> Outcome:
    given: dict[str, Any] = {
        "number": 1,
        "system": "redis + sqlite",
        "renews": True,
        "effects": 150,
        "messages": 400,
        "bodies": 170,
        "struck": Counter({Blow.CHILD: 3, Blow.NAP: 1}),
        "doubled": [],
        "lost": [],
        "stuck": [],
        "skipped": 0,
        "vanished": 0,
        "seconds": 30.0,
    }
    return Outcome(**{**given, **changes})


def soaked(*outcomes: Outcome) -> Soaked:
    return Soaked(seed=3, seconds=60.0, outcomes=list(outcomes), left_out=[])


def test_none_in_so_many_bounds_the_rate() -> None:
    clean = soaked(outcome(), outcome(number=2))
    assert clean.is_clean
    assert clean.bound == pytest.approx(0.01)
    assert clean.struck == {"pool process killed": 6, "worker stopped past its leases": 2}
    assert soaked().bound is None, "nothing done, nothing known"


@pytest.mark.parametrize("fault", ["doubled", "lost", "stuck"])
def test_one_fault_is_told_with_its_round(fault: str) -> None:
    struck = soaked(outcome(), outcome(number=2, **{fault: ["mail 7"]}))
    assert not struck.is_clean
    assert (struck.bound is None) is (fault == "doubled")
    told = io.StringIO()
    show(struck, PlainNarrator(told))
    assert f"{fault.upper()} in round 2 (redis + sqlite): mail 7" in told.getvalue()
    assert json.loads(json.dumps(struck.to_json()))[fault] == ["round 2, mail 7"]


def test_the_figures_say_under_what_they_were_had() -> None:
    figures = soaked(outcome()).to_json()
    assert figures["seed"] == 3
    assert {"python", "celery", "kombu", "effectonce"} <= figures["versions"].keys()
    assert (figures["operations"], figures["blows"]["pool process killed"]) == (150, 3)
    assert figures["rounds"][0]["system"] == "redis + sqlite"
