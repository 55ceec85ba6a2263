"""EO402: `get_or_create` is safe only on columns that the database keeps unique."""

from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.lookups import model_of
from effectonce.checker.models import is_covered, is_whole, uniques
from effectonce.checker.names import last
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.walk import Step

_METHODS: Final = frozenset({"get_or_create", "update_or_create", "aget_or_create", "aupdate_or_create"})


def check(survey: Survey) -> Iterator[Found]:
    """Compare what is looked up with what the model keeps unique."""
    for function, tasks in survey.reached:
        for step in function.calling(_METHODS):
            if ".objects" not in step.name or all(t.is_guarded for t in tasks):
                continue
            columns = _columns(step)
            model = model_of(step.name)
            unique = uniques(model, survey) if model is not None else None
            if (
                model is None
                or not columns
                or unique is None
                or not is_whole(model, survey)
                or is_covered(columns, unique)
            ):
                continue
            yield function.found(
                step.call,
                f"nothing keeps {', '.join(sorted(columns))} of {last(model)} unique, so two runs of task "
                f"{tasks[0].short!r} at once both create a row",
            )


def _columns(step: Step) -> set[str]:
    if any(each.arg is None for each in step.call.keywords):
        return set()
    return {
        each.arg for each in step.call.keywords if each.arg not in {None, "defaults", "create_defaults"} if each.arg
    }


RULE = Rule(
    code="EO402",
    name="get-or-create-without-unique",
    severity=Severity.WARNING,
    family=Family.DATABASE,
    summary="get_or_create on columns that are not unique",
    check=check,
)
