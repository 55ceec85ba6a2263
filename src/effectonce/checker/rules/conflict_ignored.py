"""EO405: an insert that does nothing on conflict says so, and nobody listens."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from effectonce.checker.effects import Effect, effect_of, sql_of
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.keyuses import is_store
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.transactions import exclusive
from effectonce.checker.walk import Step

_SQL: Final = re.compile(r"on\s+conflict\b.*\bdo\s+nothing|insert\s+(or\s+)?ignore", re.IGNORECASE | re.DOTALL)
_ANSWERS: Final = (
    "rowcount",
    "fetchone",
    "fetchall",
    "scalar",
    "first",
    "returning",
    "one_or_none",
    "inserted_primary_key",
)


def check(survey: Survey) -> Iterator[Found]:
    """Look for such inserts whose answer is not used, with an effect behind them."""
    for function, tasks in survey.reached:
        for step in function.calls:
            if not isinstance(step.statement, ast.Expr) or not _does_nothing(step) or _is_asked(step, function):
                continue
            effect = next((each for each in function.calls if _follows(each, step)), None)
            if effect is not None:
                yield function.found(
                    step.call,
                    f"whether the row was new is not asked, so line {effect.call.lineno} of task {tasks[0].short!r} "
                    "happens also if it was there already",
                )


def _does_nothing(step: Step) -> bool:
    word = step.word
    sql = sql_of(step)
    if sql is not None:
        return _SQL.search(sql) is not None
    if word == "bulk_create":
        return any(each.arg == "ignore_conflicts" for each in step.call.keywords)
    if word == "setnx":
        return is_store(step.receiver)
    return word == "execute" and bool(step.call.args) and "on_conflict_do_nothing" in ast.unparse(step.call.args[0])


def _is_asked(step: Step, function: Function) -> bool:
    after = function.source_after(step)
    return any(sign in after for sign in _ANSWERS)


def _follows(each: Step, step: Step) -> bool:
    return each.index > step.index and effect_of(each) not in {None, Effect.INSERT} and not exclusive(each, step)


RULE = Rule(
    code="EO405",
    name="conflict-ignored",
    severity=Severity.ERROR,
    family=Family.DATABASE,
    summary="An insert that may do nothing is not asked whether it did",
    check=check,
)
