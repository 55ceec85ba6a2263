"""Where tasks are sent from: `delay`, `apply_async`, `send_task`, canvases."""

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from effectonce.checker.module import Function, Module
from effectonce.checker.names import before, last
from effectonce.checker.tasks import Task
from effectonce.checker.walk import Kind, Step

if TYPE_CHECKING:
    from effectonce.checker.survey import Survey

SENDING: Final = re.compile(r"\.delay\b|apply_async|send_task|\b(chain|group|chord)\(")
_METHODS: Final = frozenset({"delay", "apply_async", "send_task", "delay_on_commit", "apply_async_on_commit"})
_CANVASES: Final = frozenset({"chain()", "group()", "chord()"})
SENDS: Final = _METHODS | _CANVASES
"""The last words of calls that may send."""

_SIGNATURES: Final = re.compile(r"\.(s|si|signature|subtask|set|clone)\(\)$")
_NOT_CELERY: Final = re.compile(r"pool|executor|thread|Process|asyncresult|dask|joblib|rq\.|queue", re.IGNORECASE)
_AFTER_COMMIT: Final = {"on_commit", "run_on_commit", "call_on_commit", "delay_on_commit", "apply_async_on_commit"}


@dataclass(frozen=True, slots=True, eq=False)
class Send:
    """One place where a message is sent."""

    step: Step
    module: Module
    function: Function | None
    task: Task | None
    target: str
    method: str
    arguments: list[ast.expr]
    options: dict[str, ast.expr]

    @property
    def waits_for_commit(self) -> bool:
        """Tell whether it is sent by a hook that runs after the commit."""
        return self.method.endswith("_on_commit") or (self.task is not None and self.task.sends_after_commit)

    @property
    def is_deferred(self) -> bool:
        """Tell whether it stands in code that runs later than the code around it."""
        return self.waits_for_commit or self.step.inside(Kind.LAMBDA)


def send_of(step: Step, place: Function | Module, survey: "Survey") -> Send | None:
    """What *step* sends, or None if it sends nothing."""
    name = step.name
    method = last(name)
    function = place if isinstance(place, Function) else None
    module = place.module if isinstance(place, Function) else place
    if method in _CANVASES:
        return Send(step, module, function, None, name, "canvas", step.call.args, _keywords(step.call))
    if method not in _METHODS:
        return None
    target = before(name)
    if not target or _NOT_CELERY.search(target) or (method == "delay" and not _is_plausible(step.call, target)):
        return None
    while (match := _SIGNATURES.search(target)) is not None:
        target = target[: match.start()]
    if method == "send_task":
        return _by_name(step, module, function, survey)
    task = survey.task(target)
    if method.startswith("delay"):
        given = [*step.call.args, *(each.value for each in step.call.keywords)]
        return Send(step, module, function, task, target, method, given, {})
    options = _keywords(step.call)
    return Send(step, module, function, task, target, method, _listed(step.call, options, 0), options)


def is_after_commit(name: str) -> bool:
    """Tell whether a call of *name* runs what it is given after the commit."""
    return last(name) in _AFTER_COMMIT


def _by_name(step: Step, module: Module, function: Function | None, survey: "Survey") -> Send:
    first = step.call.args[0] if step.call.args else None
    target = survey.value(first, module)
    options = _keywords(step.call)
    task = survey.task(target) if isinstance(target, str) else None
    arguments = _listed(step.call, options, 1)
    return Send(step, module, function, task, str(target), "send_task", arguments, options)


def _keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {each.arg: each.value for each in call.keywords if each.arg}


def _listed(call: ast.Call, options: dict[str, ast.expr], place: int) -> list[ast.expr]:
    """The arguments for the task in `apply_async((a, b), {"c": d})`."""
    out: list[ast.expr] = []
    given = call.args[place : place + 2]
    for node in [*given, *(options[name] for name in ("args", "kwargs") if name in options)]:
        match node:
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                out.extend(elts)
            case ast.Dict(values=values):
                out.extend(values)
            case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
                out.extend(each.value for each in keywords)
            case _:
                out.append(node)
    return out


def _is_plausible(call: ast.Call, target: str) -> bool:
    """Tell a task's `delay` from a clock's: the latter gets one number, or is no name of the project."""
    one_number = (
        len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, float)
    )
    return not one_number and not target.startswith(("time.", "asyncio.", "gevent."))
