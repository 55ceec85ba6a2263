"""What all rounds came to, and the bound that follows from having seen no double."""

import platform
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

from effectonce.lab.narrator import Narrator
from effectonce.lab.soak.course import Outcome

RULE_OF_THREE: Final = 3.0
"""None in N trials: with a confidence of 95 % the rate is below 3/N (Hanley and Lippman-Hand, JAMA 1983)."""
_PACKAGES: Final = ("effectonce", "celery", "kombu", "redis", "sqlalchemy", "amqp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Soaked:
    """A whole soak; *left_out* says which systems this machine cannot have, and why."""

    seed: int
    seconds: float
    outcomes: list[Outcome]
    left_out: list[str]

    @property
    def effects(self) -> int:
        """Effects that were asked for."""
        return sum(each.effects for each in self.outcomes)

    @property
    def struck(self) -> Counter[str]:
        """Blows that met something, by kind."""
        total: Counter[str] = Counter()
        for outcome in self.outcomes:
            total.update({blow.value: number for blow, number in outcome.struck.items()})
        return total

    @property
    def bound(self) -> float | None:
        """What the rate of doubled effects is below, with 95 %; None when one was seen, or nothing was done."""
        doubled = any(each.doubled for each in self.outcomes)
        return None if doubled or not self.effects else min(1.0, RULE_OF_THREE / self.effects)

    @property
    def is_clean(self) -> bool:
        """Tell whether nothing was doubled, lost or stuck."""
        return all(each.is_clean for each in self.outcomes)

    def to_json(self) -> dict[str, Any]:
        """The figures as one writes them down."""
        return {
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            "versions": {"python": platform.python_version(), **{each: version(each) for each in _PACKAGES}},
            "operations": self.effects,
            "messages": sum(each.messages for each in self.outcomes),
            "bodies": sum(each.bodies for each in self.outcomes),
            "blows": dict(self.struck.most_common()),
            "doubled": [f"round {each.number}, {what}" for each in self.outcomes for what in each.doubled],
            "lost": [f"round {each.number}, {what}" for each in self.outcomes for what in each.lost],
            "stuck": [f"round {each.number}, {what}" for each in self.outcomes for what in each.stuck],
            "skipped": sum(each.skipped for each in self.outcomes),
            "vanished": sum(each.vanished for each in self.outcomes),
            "doubled_below": self.bound,
            "left_out": self.left_out,
            "rounds": [_round(each) for each in self.outcomes],
        }


def show(soaked: Soaked, narrator: Narrator) -> None:
    """Say it to a person."""
    systems: dict[str, list[Outcome]] = {}
    for outcome in soaked.outcomes:
        systems.setdefault(outcome.system, []).append(outcome)
    narrator.text()
    narrator.table(
        ["effects", "messages", "bodies", "blows", "doubled", "lost", "stuck"],
        {
            name: [
                sum(each.effects for each in some),
                sum(each.messages for each in some),
                sum(each.bodies for each in some),
                sum(each.struck.total() for each in some),
                sum(len(each.doubled) for each in some),
                sum(len(each.lost) for each in some),
                sum(len(each.stuck) for each in some),
            ]
            for name, some in systems.items()
        },
    )
    narrator.text()
    for line in lines(soaked):
        narrator.text(line)


def lines(soaked: Soaked) -> Iterator[str]:
    """Yield blows, faults and what follows."""
    for blow, number in soaked.struck.most_common():
        yield f"{number:5} {blow}"
    for outcome in soaked.outcomes:
        for kind in ("doubled", "lost", "stuck"):
            for what in getattr(outcome, kind):
                yield f"{kind.upper()} in round {outcome.number} ({outcome.system}): {what}"
    skipped, vanished = (sum(getattr(each, name) for each in soaked.outcomes) for name in ("skipped", "vanished"))
    yield f"letters that were broken off and count as done, as their policy says: {skipped}"
    yield f"messages without an answer, which a broker may lose when it is struck: {vanished}"
    for reason in soaked.left_out:
        yield f"left out: {reason}"
    if soaked.bound is not None:
        yield f"no effect of {soaked.effects} was doubled: with 95 % confidence fewer than {soaked.bound:.2%} are"
    yield f"seed {soaked.seed}, {soaked.seconds:.0f} s"


def _round(outcome: Outcome) -> dict[str, Any]:
    return {
        "number": outcome.number,
        "system": outcome.system,
        "renews_visibility": outcome.renews,
        "operations": outcome.effects,
        "messages": outcome.messages,
        "bodies": outcome.bodies,
        "blows": {blow.value: number for blow, number in outcome.struck.items()},
        "seconds": round(outcome.seconds, 1),
    }
