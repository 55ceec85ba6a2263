"""EO409: a state that was read in Python may be another one by the time it is written."""

import ast
from collections.abc import Iterator
from typing import Final

from effectonce.checker.effects import Effect, effects_of
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import STATE_WORDS
from effectonce.checker.module import Function
from effectonce.checker.names import dotted, last, words
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.walk import Kind, Step

_SAVES: Final = frozenset({"save"})


def check(survey: Survey) -> Iterator[Found]:
    """Look for a test of a row's state, a new state, a save and an effect, with nothing that locks the row."""
    for function, tasks in survey.reached:
        if any(task.is_guarded for task in tasks):
            continue
        for step in function.calling(_SAVES):
            row = _saved(step)
            if row is None or not _was_read(row, function):
                continue
            branch = _branch(step, row)
            effect = _effect(branch, function) if branch is not None else None
            if effect is not None:
                yield function.found(
                    step.call,
                    f"two runs of task {tasks[0].short!r} at once both read the old state of {row!r}, and both do line "
                    f"{effect.call.lineno}; let an update with the old state in its filter decide",
                )


def _saved(step: Step) -> str | None:
    match step.call.func:
        case ast.Attribute(value=ast.Name(id=row), attr="save"):
            return row
        case _:
            return None


def _was_read(row: str, function: Function) -> bool:
    values = [dotted(value, function.scope) for value in function.assigned.get(row, [])]
    return any(".objects" in value and last(value) in {"get()", "first()"} for value in values) and not any(
        "for_update" in value for value in values
    )


def _branch(step: Step, row: str) -> ast.If | None:
    """The branch around *step* that tests a state of the row and gives it a new one."""
    for frame in step.frames(Kind.IF):
        if isinstance(frame.node, ast.If):
            tested = {getattr(node, "attr", "") for node in ast.walk(frame.node.test) if _is_state(node, row)}
            given = {
                target.attr
                for statement in frame.node.body
                if isinstance(statement, ast.Assign)
                for target in statement.targets
                if isinstance(target, ast.Attribute) and _is_state(target, row)
            }
            if tested & given:
                return frame.node
    return None


def _is_state(node: ast.AST, row: str) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == row
        and bool(words(node.attr) & STATE_WORDS)
    )


def _effect(branch: ast.If, function: Function) -> Step | None:
    for step, effect in effects_of(function):
        outside = effect in {Effect.MAIL, Effect.POST, Effect.PAYMENT}
        if outside and any(frame.node is branch for frame in step.frames(Kind.IF)):
            return step
    return None


RULE = Rule(
    code="EO409",
    name="read-modify-write",
    severity=Severity.WARNING,
    family=Family.DATABASE,
    summary="A state is read, tested in Python and saved, with an effect",
    check=check,
)
