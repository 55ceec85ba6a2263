"""What is made of a trial: what was asked for is compared with what took effect and what the callers were told."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

Word = Literal["once", "doubled", "lost", "unasked", "endless", "refused", "stuck", "failed", "broken"]

WORDS: Final[dict[Word, str]] = {
    "once": "everything that was asked for took effect once, and every caller got an answer",
    "doubled": "something took effect more than once",
    "lost": "something that was asked for never took effect",
    "unasked": "something took effect that nobody had asked for, or that was taken back",
    "endless": "a body ran again and again without end",
    "refused": "a call was refused, though nothing was under way",
    "stuck": "a caller waits for ever for an answer",
    "failed": "the effect took place, and the caller was told that it failed, or got another result",
    "broken": "the trial could not be carried out",
}
"""What each word of a verdict means, the worst first but for the first and the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of the trial: its message, what the caller was told in the end, and what the caller may be told."""

    intent: str
    message: str
    state: str = "PENDING"
    refused: str = ""
    may_fail: bool = False
    wanted: str | None = None
    """The result that the caller has to get, if it matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was counted. *expected* has the right number of effects of each intent, *most_bodies* the limit of runs."""

    expected: Mapping[str, int]
    effects: Mapping[str, int]
    bodies: Mapping[str, int]
    calls: Sequence[Call]
    most_bodies: int = 30
    broken: str = ""
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def words(self) -> tuple[Word, ...]:
        """The verdict: ``("once",)``, or all that is wrong, the worst first."""
        if self.broken:
            return ("broken",)
        return tuple(self._faults()) or ("once",)

    @property
    def is_right(self) -> bool:
        """Tell whether nothing is wrong."""
        return self.words == ("once",)

    def _faults(self) -> "Sequence[Word]":
        effects = Counter(self.effects)
        wanted = Counter(self.expected)
        answers = [call for call in self.calls if not call.refused]
        found: dict[Word, bool] = {
            "doubled": any(times > max(1, wanted[intent]) for intent, times in effects.items()),
            "lost": any(effects[intent] < times for intent, times in wanted.items()),
            "unasked": any(times == 1 and not wanted[intent] for intent, times in effects.items()),
            "endless": any(times > self.most_bodies for times in self.bodies.values()),
            "refused": any(call.refused and not call.may_fail for call in self.calls),
            "stuck": any(call.state not in ENDED for call in answers),
            "failed": any(call.state in {"FAILURE", MISTOLD} and not call.may_fail for call in answers),
        }
        return [word for word, holds in found.items() if holds]


MISTOLD: Final = "MISTOLD"
"""A caller got the result of something else."""

ENDED: Final = frozenset({"SUCCESS", "FAILURE", "REVOKED", "HELD", "SUPPRESSED", MISTOLD})
"""States in which a caller knows; a contender that suppresses a call at once answers none of Celery's."""
