"""EO512: a loop that dies in the middle begins again at the start."""

import ast
from collections.abc import Iterator

from effectonce.checker.effects import Effect, effect_of
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import is_answered
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.transactions import is_write
from effectonce.checker.walk import Frame, Kind, Step


def check(survey: Survey) -> Iterator[Found]:
    """Look for effects in loops of tasks that are repeated, where nothing is written for each item."""
    for function, tasks in survey.reached:
        repeated = [task for task in tasks if (task.is_late or task.retries) and not is_answered(task, survey)]
        for step in function.calls if repeated else ():
            effect = effect_of(step)
            frame = _loop(step)
            if (
                effect in {Effect.MAIL, Effect.POST, Effect.PAYMENT}
                and frame is not None
                and not _records(frame, function)
            ):
                yield function.found(
                    step.call,
                    f"when task {repeated[0].short!r} is run again it begins at the first item: all that were done "
                    "before are done again; give each item a task or a record of its own",
                )


def _loop(step: Step) -> Frame | None:
    for frame in step.frames(Kind.LOOP):
        if isinstance(frame.node, ast.For | ast.AsyncFor) and not isinstance(frame.node.iter, ast.List | ast.Tuple):
            return frame
    return None


def _records(frame: Frame, function: Function) -> bool:
    return any(is_write(step) and step.within(frame) for step in function.calls)


RULE = Rule(
    code="EO512",
    name="loop-of-effects",
    severity=Severity.WARNING,
    family=Family.SENDING,
    summary="A loop of effects begins at the start when the task is repeated",
    check=check,
)
