"""The judge of a soak sees what it is there to see."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from effectonce.lab.soak.judge import Count, count, excused
from effectonce.lab.soak.outside import Outside
from effectonce.lab.soak.plan import Blow, Order


def order(number: int, task: str) -> Order:
    return Order(number=number, task=task, at=0.0, seconds=0.1, retries=0, repeats=())


def ground(folder: Path, *, rows: dict[int, int], calls: list[tuple[str, int, str]]) -> Any:
    outside = Outside(folder / "outside")
    for call in calls:
        outside.call(*call)
    return SimpleNamespace(judge=SimpleNamespace(count=lambda: Counter(rows)), outside=outside)


CASES: list[tuple[str, int, list[tuple[str, int, str]], Count]] = [
    ("charge", 1, [("note", 1, "k")], Count()),
    ("charge", 2, [("note", 1, "k")], Count(doubled=["charge 1: 2 times"])),
    ("charge", 0, [("note", 1, "k")], Count(lost=["charge 1"])),
    ("charge", 1, [], Count(lost=["note 1"])),
    ("charge", 1, [("note", 1, "k"), ("note", 1, "l")], Count(doubled=["note 1: 2 times"])),
    ("mail", 0, [("mail", 1, "k"), ("mail", 1, "k")], Count()),
    ("mail", 0, [("mail", 1, "k"), ("mail", 1, "l")], Count(doubled=["mail 1: 2 times"])),
    ("mail", 0, [("letter", 1, "k"), ("mail", 2, "k")], Count(lost=["mail 1"])),
    ("letter", 0, [("letter", 1, "k")], Count()),
    ("letter", 0, [("letter", 1, "k"), ("letter", 1, "k")], Count(doubled=["letter 1: 2 times"])),
    ("letter", 0, [], Count(skipped=["letter 1"])),
]


@pytest.mark.parametrize(("task", "rows", "calls", "expected"), CASES)
def test_an_effect_is_counted_where_nothing_hindered_a_second_one(
    tmp_path: Path, task: str, rows: int, calls: list[tuple[str, int, str]], expected: Count
) -> None:
    found = count(ground(tmp_path, rows={1: rows}, calls=calls), (order(1, task),))
    assert found == replace(expected, effects=2 if task == "charge" else 1)


def test_only_redis_may_lose_what_it_had_in_its_hand() -> None:
    struck = Counter({Blow.WORKER: 2, Blow.BROKER_KILL: 1, Blow.CHILD: 9, Blow.STORE_KILL: 9, Blow.NAP: 9})
    assert excused("rabbitmq", struck) == 0
    assert excused("redis", struck) == 6
    assert excused("redis", Counter({Blow.CHILD: 9})) == 0
