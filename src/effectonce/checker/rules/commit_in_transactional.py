"""EO412: the body of a Transactional task commits with its entry, and not by itself."""

import re
from collections.abc import Iterator
from typing import Final

from effectonce.checker.effects import sql_of
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.policies import transactional
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.transactions import is_session
from effectonce.checker.walk import Step

_OURS: Final = re.compile(r"(^|\.)(once|effectonce|EffectOnce\(\))\.(session|connection)$")
_SQL: Final = re.compile(r"^\s*(commit|rollback|prepare\s+transaction)\b", re.IGNORECASE)
_CONNECTION: Final = re.compile(r"(connection|conn|transaction)(\(\))?$")


def check(survey: Survey) -> Iterator[Found]:
    """Look for commits and rollbacks in Transactional bodies."""
    for task in transactional(survey):
        for function in survey.bodies(task):
            for step in function.calls:
                if _ends(step):
                    yield function.found(
                        step.call,
                        f"the body of task {task.short!r} is committed together with its entry; a commit or rollback "
                        "of its own raises TransactionEscaped, or is work that the entry knows nothing of",
                    )


def _ends(step: Step) -> bool:
    word, receiver = step.word, step.receiver
    sql = sql_of(step)
    if sql is not None:
        return _SQL.search(sql) is not None
    if word not in {"commit", "rollback"} or _OURS.search(receiver):
        return False
    return is_session(receiver) or _CONNECTION.search(receiver) is not None


RULE = Rule(
    code="EO412",
    name="commit-in-transactional",
    severity=Severity.ERROR,
    family=Family.DATABASE,
    summary="A Transactional body commits or rolls back by itself",
    check=check,
)
