"""EO406: `select_for_update` locks the rows that it finds, and no row that is not there."""

from collections.abc import Iterator
from typing import Final

from effectonce.checker.effects import inserts_of
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.lookups import inserted_model, lookups_of
from effectonce.checker.models import is_covered, uniques
from effectonce.checker.names import last
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey

_LOCKING: Final = frozenset({"select_for_update"})


def check(survey: Survey) -> Iterator[Found]:
    """Look for inserts that depend on a locking look that found nothing."""
    for function, tasks in survey.reached:
        if not function.calling(_LOCKING):
            continue
        for lookup in lookups_of(function):
            if "select_for_update()" not in lookup.step.name:
                continue
            known = uniques(lookup.model, survey)
            if known is not None and is_covered(lookup.columns, known):
                continue
            for step in inserts_of(function):
                if (
                    step.index > lookup.step.index
                    and inserted_model(step, function) == lookup.model
                    and lookup.decides(step, function)
                ):
                    yield function.found(
                        lookup.step.call,
                        f"where there is no {last(lookup.model)} yet, this locks nothing: two runs of task "
                        f"{tasks[0].short!r} both find none and both insert in line {step.call.lineno}",
                    )
                    break


RULE = Rule(
    code="EO406",
    name="lock-of-absent-row",
    severity=Severity.ERROR,
    family=Family.DATABASE,
    summary="A row that is not there cannot be locked",
    check=check,
)
