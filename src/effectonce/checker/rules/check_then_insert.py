"""EO401: between the look and the insert another worker inserts."""

import ast
from collections.abc import Iterator

from effectonce.checker.effects import inserts_of
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import catches_duplicate
from effectonce.checker.lookups import Lookup, inserted_columns, inserted_model, lookups_of
from effectonce.checker.models import is_covered, uniques
from effectonce.checker.module import Function
from effectonce.checker.names import last
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.walk import Kind, Step


def check(survey: Survey) -> Iterator[Found]:
    """Look for inserts that depend on a look at the same table."""
    for function, tasks in survey.reached:
        if all(task.is_guarded for task in tasks):
            continue
        for lookup in lookups_of(function) if inserts_of(function) else ():
            insert = _insert_after(lookup, function)
            if insert is None or _is_safe(lookup, insert, function, survey):
                continue
            yield function.found(
                insert.call,
                f"{last(lookup.model).removeprefix('sql ')} is looked up in line {lookup.step.call.lineno} and "
                "inserted here: two runs at the same time both find nothing, and both insert",
            )


def _insert_after(lookup: Lookup, function: Function) -> Step | None:
    for step in inserts_of(function):
        if step.index > lookup.step.index:
            model = inserted_model(step, function)
            if model is not None and model == lookup.model and lookup.decides(step, function):
                return step
    return None


def _is_safe(lookup: Lookup, insert: Step, function: Function, survey: Survey) -> bool:
    """Tell whether the database refuses the second row, or a lock of an existing row keeps the second run away."""
    known = uniques(lookup.model, survey)
    if known is not None and is_covered(lookup.columns | inserted_columns(insert, function), known):
        return True
    if any(catches_duplicate(frame.node) for frame in insert.frames(Kind.TRY)):
        return True
    return any(
        last(step.name.removesuffix("()")) in {"select_for_update", "with_for_update", "lock", "acquire"}
        or "advisory" in step.name
        for step in function.calls
        if step.index < insert.index and isinstance(step.node, ast.Call)
    )


RULE = Rule(
    code="EO401",
    name="check-then-insert",
    severity=Severity.WARNING,
    family=Family.DATABASE,
    summary="A row is looked up and then inserted, and nothing makes it unique",
    check=check,
)
