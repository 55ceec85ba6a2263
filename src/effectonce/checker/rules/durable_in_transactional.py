"""EO410: `durable=True` refuses to stand inside another transaction, and a Transactional body is inside of one."""

import ast
from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.policies import transactional
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.transactions import is_atomic


def check(survey: Survey) -> Iterator[Found]:
    """Look for durable blocks in Transactional bodies."""
    for task in transactional(survey):
        for function in survey.bodies(task):
            for step in function.calls:
                if is_atomic(step.name) and any(_is_durable(each) for each in step.call.keywords):
                    yield function.found(
                        step.call,
                        f"the body of task {task.short!r} runs inside the ledger's transaction, where Django refuses a "
                        "durable block",
                    )


def _is_durable(each: ast.keyword) -> bool:
    return each.arg == "durable" and isinstance(each.value, ast.Constant) and each.value.value is True


RULE = Rule(
    code="EO410",
    name="durable-in-transactional",
    severity=Severity.ERROR,
    family=Family.DATABASE,
    summary="A durable block in the body of a Transactional task",
    check=check,
)
