"""The crash matrix: a process dies at each point once, and then effects are 1, losses 0, and nothing is stuck.

One case is a broker, a ledger, a policy and a pool. All points of a case run side by side, each with a queue and a
worker of its own, which is started again when all of it died. An ordinary run has every store, broker, policy and
pool; the other combinations are `soak`.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from effectonce.crashpoints import POINTS
from tests.crash.cases import Matrix
from tests.services import Fleet

OUTBOX = {each for each in POINTS if each.partition(".")[0] in {"outbox", "dispatch", "relay"}}
"""What only a body passes whose messages commit with it."""

NEVER = {
    # A first delivery inserts its entry as completed; only what is committed apart is settled by a store.
    "charge": {
        "renew.before",
        "renew.after",
        "step.begin.before",
        "step.begin.after",
        "step.end.before",
        "step.end.after",
    },
    "mail": {"commit.before", "commit.after", *OUTBOX},
}

TICKING = {point for point in POINTS if point.startswith("tick.")}
"""Points that only a beat passes: ``test_beat.py``."""

NEVER_ON = {
    # RabbitMQ knows who holds a message by its connection: there is nothing to renew and nothing to sweep.
    "amqp": {"visibility.before", "visibility.after", "sweep.before", "sweep.after"},
}
ELSEWHERE = {"follow.before", "follow.after", "reserve.before", "reserve.after", "give_back.before", "give_back.after"}
"""Points that only `Exclusive` and `Unique` pass: ``tests/integration/policies`` kills there."""

ORDINARY = [
    ("redis+postgresql", "charge", "prefork"),
    ("amqp+sqlite", "charge", "threads"),
    ("redis+redis", "mail", "prefork"),
    ("amqp+postgresql", "mail", "threads"),
    ("amqp+mariadb", "charge", "prefork"),
]
LEDGERS = ("postgresql", "mariadb", "sqlite", "redis", "sentinel", "cluster")
PAIRS = [f"{broker}+{ledger}" for broker in ("redis", "amqp") for ledger in LEDGERS]
ALL = [
    (pair, policy, pool)
    for pair in PAIRS
    for policy in ("charge", "mail")
    for pool in ("prefork", "threads")
    if not (policy == "charge" and pair.partition("+")[2] in {"redis", "sentinel", "cluster"})
]


def cases() -> Iterator[Any]:
    """Every combination; those that the ordinary run leaves out are marked."""
    for case in ALL:
        yield pytest.param(*case, marks=() if case in ORDINARY else pytest.mark.soak, id="-".join(case))


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("pair", "policy", "pool"), list(cases()))
def test_a_death_at_every_point_leaves_one_effect_and_nothing_stuck(
    fleet: Fleet, pair: str, policy: str, pool: str
) -> None:
    """A77, A78, A84."""
    points = sorted(POINTS - NEVER[policy] - TICKING - NEVER_ON.get(pair.partition("+")[0], set()) - ELSEWHERE)
    with Matrix(fleet, pair, policy=policy, pool=pool) as matrix:
        runs = [matrix.run(point) for point in points]
        matrix.watch(runs)
        problems = [problem for run in runs for problem in matrix.judge(run)]
        last_words = [run.worker.log.read_text()[-3000:] for run in runs if matrix.judge(run)][:1]
    assert not problems, "\n".join([*problems, *last_words])


WATCHED = ["claim.before", "claim.after", "release.before", "release.after", "settle.before", "settle.after"]
"""Points that an attempt passes which is only observed, and asks for a retry."""


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("pair", ["amqp+postgresql", "redis+sqlite", "redis+redis"])
def test_a_death_while_a_policy_is_only_observed_loses_nothing_and_leaves_nothing_stuck(
    fleet: Fleet, pair: str
) -> None:
    """The broker repeats as it would without us; the outside is shown one key."""
    with Matrix(fleet, pair, policy="watched", pool="threads") as matrix:
        runs = [matrix.run(point) for point in WATCHED]
        matrix.watch(runs)
        problems = [problem for run in runs for problem in matrix.judge(run)]
    assert not problems, "\n".join(problems)


def test_every_crash_point_stands_in_the_code_and_in_the_matrix() -> None:
    """A point that nobody passes, or that no policy's case has, proves nothing."""
    source = "".join(path.read_text() for path in Path("src/effectonce").rglob("*.py"))
    assert set(re.findall(r'crash_point\(\s*"([a-z_.]+)"', source)) == POINTS
    assert set.intersection(*NEVER.values()) == set()
    assert {policy for _, policy, _ in ORDINARY} == set(NEVER)
    for at, parts in enumerate(({"redis", "amqp"}, {"postgresql", "mariadb", "sqlite", "redis"})):
        assert {pair.split("+")[at] for pair, _, _ in ORDINARY} == parts


def test_an_unarmed_point_costs_well_under_a_microsecond() -> None:
    """The best of many rounds: the machine is shared, the cost is not."""
    from effectonce import crashpoints  # noqa: PLC0415 - timed through the module, as it is used

    def round_of(number: int) -> float:
        began = time.perf_counter()
        for _ in range(number):
            crashpoints.crash_point("claim.before")
        return (time.perf_counter() - began) / number

    assert min(round_of(2000) for _ in range(50)) < 0.5e-6
