"""EO107: Celery and the brokers do not look at `task_id`; two messages with one id are two runs."""

import ast
import re
from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.flows import Flow, is_random
from effectonce.checker.guards import is_answered
from effectonce.checker.module import Function
from effectonce.checker.names import words
from effectonce.checker.rule import Rule
from effectonce.checker.sends import Send
from effectonce.checker.survey import Survey

_IDS = {"task", "uuid", "job", "run", "request", "correlation", "uid", "guid", "hex", "trace", "export", "import"}
_ASKED_LATER = re.compile(r"AsyncResult\(|\.revoke\(")


def check(survey: Survey) -> Iterator[Found]:
    """Look at each send that chooses its id, unless the receiving task asks about earlier work itself."""
    asking = [
        line
        for module in survey.project.modules
        if _ASKED_LATER.search(module.source.text)
        for line in module.source.lines
        if _ASKED_LATER.search(line)
    ]
    for send in survey.all_sends:
        node = send.options.get("task_id")
        if node is None or not _is_meaningful(node, send.function, survey):
            continue
        if _is_asked_later(node, asking) or (send.task is not None and is_answered(send.task, survey)):
            continue
        yield send.module.found(
            node,
            "a task_id does not keep repeats away: Celery and the broker take two messages with the same id, "
            f"and {_named(send)} runs twice",
        )


def _named(send: Send) -> str:
    return f"task {send.task.short!r}" if send.task is not None else "the task"


def _is_meaningful(node: ast.expr, function: Function | None, survey: Survey) -> bool:
    """Tell whether the id says what the work is: a text with parts, or a digest; not a new or a handed-on id."""
    if isinstance(node, ast.Name) and function is not None and node.id in function.assigned:
        values = function.assigned[node.id]
        return len(values) == 1 and _is_meaningful(values[0], function, survey)
    if function is not None and Flow(function, survey, is_random).carries(node):
        return False
    match node:
        case ast.JoinedStr() | ast.BinOp():
            return "request.id" not in ast.unparse(node)
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return _is_meaningful(inner, function, survey)
        case ast.Name() | ast.Attribute():
            return not words(ast.unparse(node)) & _IDS
        case ast.Call(func=func):
            word = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            return word in {"uuid5", "uuid3", "format", "hexdigest", "join"}
        case _:
            return False


def _is_asked_later(node: ast.expr, asking: list[str]) -> bool:
    """Tell whether somebody asks for the result, or revokes the task, by an id that begins like this one."""
    start = next((each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and each.value), None)
    return isinstance(start, str) and any(start in line for line in asking)


RULE = Rule(
    code="EO107",
    name="task-id-for-deduplication",
    severity=Severity.WARNING,
    family=Family.KEYS,
    summary="A chosen task_id does not keep repeats away",
    check=check,
)
