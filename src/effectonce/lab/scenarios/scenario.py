"""What a scenario is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from effectonce.lab.trials.trial import Trial

Play = Callable[["Trial"], None]
REGISTER: Final[list["Scenario"]] = []
"""All scenarios, in the order of their modules; `effectonce.lab.scenarios` fills it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One source of duplicates or losses that is made to happen.

    *question* is what is asked, *right* what should come out, *needs* what it cannot do without (`trials.parts`),
    *schedule* whether it is about beat, *seconds* about how long it takes.
    """

    name: str
    group: str
    question: str
    right: str
    play: Play
    needs: frozenset[str] = field(default_factory=frozenset)
    schedule: bool = False
    rabbitmq: bool = False
    seconds: int = 15


def scenario(
    name: str,
    *,
    group: str,
    right: str,
    needs: tuple[str, ...] = (),
    schedule: bool = False,
    rabbitmq: bool = False,
    seconds: int = 15,
) -> Callable[[Play], Play]:
    """Register the function below as a scenario; the first paragraph of its docstring is the question."""

    def register(play: Play) -> Play:
        question = " ".join((play.__doc__ or "").split())
        REGISTER.append(
            Scenario(
                name=name,
                group=group,
                question=question,
                right=right,
                play=play,
                needs=frozenset(needs),
                schedule=schedule,
                rabbitmq=rabbitmq,
                seconds=seconds,
            )
        )
        return play

    return register
