"""EO505: a row in a message is the row as it was; a request or a session cannot be sent at all."""

import ast
from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.module import Function
from effectonce.checker.names import dotted, last
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey

_ROWS: Final = {"get()", "create()", "first()", "last()", "earliest()", "latest()", "get_object_or_404()"}
_MODELS: Final = ("models.Model", "db.Model", "AbstractUser", "AbstractBaseUser")


def check(survey: Survey) -> Iterator[Found]:
    """Look for rows, requests and sessions among the arguments of sends."""
    for function, sends in survey.senders:
        for send in sends:
            if send.method == "canvas":
                continue
            for argument in send.arguments:
                what = _what(argument, function, survey)
                if what is not None:
                    yield function.found(
                        argument,
                        f"{what} is put into the message: the task sees it as it was when it was sent, if it can be "
                        "sent at all; send its key",
                    )


def _what(argument: ast.expr, function: Function, survey: Survey) -> str | None:
    if not isinstance(argument, ast.Name):
        return None
    name = argument.id
    values = [dotted(value, function.scope) for value in function.assigned.get(name, [])]
    if len(values) == 1 and last(values[0]) in _ROWS and (".objects." in values[0] or "get_object_or_404" in values[0]):
        return f"the row {name!r}"
    if values or name not in function.parameters:
        return None
    if name == "self" and function.owner is not None and _is_model(function, survey):
        return "the row itself"
    if name == "request" and not function.is_task and _is_web(function):
        return "the request"
    if name == "instance" and any("receiver" in mark for mark, _ in function.decorators):
        return "the row 'instance'"
    return None


def _is_web(function: Function) -> bool:
    """Tell whether the parameter `request` is one of a web framework, and not a message of the project's own."""
    arguments = [*function.node.args.posonlyargs, *function.node.args.args]
    noted = next((each.annotation for each in arguments if each.arg == "request"), None)
    return noted is None or "HttpRequest" in ast.unparse(noted)


def _is_model(function: Function, survey: Survey) -> bool:
    owner = function.owner
    return owner is not None and any(base.endswith(_MODELS) for base in survey.project.ancestors(owner))


RULE = Rule(
    code="EO505",
    name="model-as-argument",
    severity=Severity.WARNING,
    family=Family.SENDING,
    summary="A row or a request is put into the message",
    check=check,
)
