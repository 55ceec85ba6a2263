"""EO510: `post_save` comes with every save, also with those of fixtures and of the task itself."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey

_HARMLESS: Final = re.compile(
    r"index|cache|search|sync|refresh|invalidate|update|recalc|rebuild|schedule", re.IGNORECASE
)
_ASKED: Final = {"created", "update_fields", "raw"}


def check(survey: Survey) -> Iterator[Found]:
    """Look for receivers of `post_save` that send without a look at what happened."""
    for function, sends in survey.senders:
        if not _receives(function) or _asks(function):
            continue
        for send in sends:
            if not send.is_deferred and not _HARMLESS.search(send.target.rpartition(".")[2]):
                yield function.found(
                    send.step.call,
                    "the task is sent with every save of the row, also when nothing that matters changed: test "
                    "created, update_fields or what differs",
                )


def _receives(function: Function) -> bool:
    for name, node in function.decorators:
        if name.endswith("receiver()") and isinstance(node, ast.Call) and node.args:
            return "post_save" in ast.unparse(node.args[0])
    return False


def _asks(function: Function) -> bool:
    names = {node.id for node in ast.walk(function.node) if isinstance(node, ast.Name)}
    texts = {node.value for node in ast.walk(function.node) if isinstance(node, ast.Constant)}
    branches = any(isinstance(step.node, ast.If) for step in function.steps)
    return branches or bool((names | texts) & _ASKED)


RULE = Rule(
    code="EO510",
    name="signal-sends-on-every-save",
    severity=Severity.WARNING,
    family=Family.SENDING,
    summary="A receiver of post_save sends a task with every save",
    check=check,
)
