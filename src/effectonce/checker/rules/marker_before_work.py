"""EO403: a marker that is committed first says "done" of work that a crash has prevented."""

import ast
from collections.abc import Iterator

from effectonce.checker.effects import effects_of
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.markers import claims_key, marks_key, marks_row
from effectonce.checker.module import Function
from effectonce.checker.names import words
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.transactions import atomic_frame, exclusive, session_frame
from effectonce.checker.walk import Kind, Step


def check(survey: Survey) -> Iterator[Found]:
    """Look for markers on their own, with an effect behind them."""
    for function, tasks in survey.reached:
        if any(task.is_guarded for task in tasks):
            continue
        effects = effects_of(function)
        for step in function.calls if effects else ():
            if not _marks(step, function) or atomic_frame(step) is not None or session_frame(step) is not None:
                continue
            effect = next(
                (each for each, _ in effects if each.index > step.index and _works(each, step, function)), None
            )
            if effect is not None and not _takes_back(step, function):
                yield function.found(
                    step.call,
                    f"the marker is there before the work of line {effect.call.lineno}: if task {tasks[0].short!r} "
                    "dies between them, the work is never done and everybody believes that it is",
                )


def _marks(step: Step, function: Function) -> bool:
    if marks_row(step, function):
        return not any(
            each.arg and words(each.arg) & {"status", "state", "lease", "expires"} for each in step.call.keywords
        )
    if not step.call.args or not claims_key(step):
        return False
    key = step.call.args[0]
    values = function.assigned.get(key.id, []) if isinstance(key, ast.Name) else []
    return marks_key(step, " ".join(ast.unparse(each) for each in [key, *values]))


def _works(step: Step, marker: Step, function: Function) -> bool:
    return not marks_row(step, function) and not exclusive(step, marker)


def _takes_back(marker: Step, function: Function) -> bool:
    """Tell whether a failure deletes the marker, or a later line says that the work is done."""
    return any(
        step.index > marker.index
        and step.word in {"delete", "unlink", "update", "save", "set", "release"}
        and (step.inside(Kind.EXCEPT, Kind.FINALLY) or step.word in {"update", "save"})
        for step in function.calls
    )


RULE = Rule(
    code="EO403",
    name="marker-before-work",
    severity=Severity.WARNING,
    family=Family.DATABASE,
    summary="A marker says that work is done before it is",
    check=check,
)
