"""EO308: what one process or machine remembers, the others do not know."""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from effectonce.checker.effects import Effect, effects_of
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.locks import locks_of
from effectonce.checker.module import Function, Module
from effectonce.checker.names import dotted
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.tasks import Task

_LOCKS: Final = frozenset({"Lock", "RLock", "BoundedSemaphore", "Semaphore"})
_ASKS: Final = frozenset({"acquire", "locked", "get"})
_MEMORIES: Final = frozenset({"functools.lru_cache", "functools.lru_cache()", "functools.cache"})
_LASTING: Final = frozenset({Effect.PAYMENT, Effect.MAIL, Effect.INSERT})
_LOCAL_CACHES: Final = ("LocMemCache", "DummyCache")
_EXISTS: Final = frozenset({"exists", "isfile", "is_file"})
_MAKES: Final = frozenset({"open", "touch", "write_text"})
_LOCK_FILE: Final = re.compile(r"lock|\.pid\b|running|mutex|progress", re.IGNORECASE)


def check(survey: Survey) -> Iterator[Found]:
    """Look for tasks that give up because of what their own process, or the disk of their machine, remembers."""
    held_in: dict[str, set[str]] = {}
    memories = _memories(survey)
    local = _local_cache(survey)
    for function, tasks in survey.reached:
        module = function.module
        if module.name not in held_in:
            held_in[module.name] = {name for name, value in module.constants.items() if _is_held(value, module)}
        held = held_in[module.name] | _flags(function)
        if held:
            yield from _given_up(function, held, tasks)
        if memories:
            yield from _remembered(function, memories, tasks)
        if local is not None:
            yield from _locked_in(local, function, survey, tasks)
        if function.calling(_EXISTS):
            yield from _lock_files(function, tasks)


def _given_up(function: Function, held: set[str], tasks: Sequence[Task]) -> Iterator[Found]:
    for _, branch in function.branches:
        name = _asked(branch, held, function)
        if name is not None and _is_changed(name, function):
            yield function.found(
                branch.test,
                f"{name!r} lives in one process; the other processes and workers that run task "
                f"{tasks[0].short!r} have their own, and all are empty after a restart",
            )


def _is_held(value: ast.expr, module: Module) -> bool:
    match value:
        case ast.Set() | ast.Dict(keys=[]) | ast.List(elts=[]):
            return True
        case ast.Call(func=ast.Name(id="set" | "dict" | "list")):
            return not value.args
        case ast.Call(func=func):
            return dotted(func, {}).removeprefix("threading.") in _LOCKS and "threading" in module.source.text
        case _:
            return False


def _flags(function: Function) -> set[str]:
    """The names of the module that the body declares global, and that begin as a flag which is down."""
    constants = function.module.constants
    if not constants or "global " not in function.text:
        return set()
    declared = {name for node in ast.walk(function.node) if isinstance(node, ast.Global) for name in node.names}
    return {name for name in declared if _is_down(constants.get(name))}


def _is_down(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and not value.value


def _asked(branch: ast.If, held: set[str], function: Function) -> str | None:
    """The name of the guard, where a branch leaves because of it."""
    leaving = branch.body[-1]
    if not isinstance(leaving, ast.Return) or leaving.value is not None:
        return None
    test = branch.test.operand if isinstance(branch.test, ast.UnaryOp) else branch.test
    if isinstance(test, ast.Name) and test.id not in held:
        values = function.assigned.get(test.id, [])
        test = values[0] if len(values) == 1 else test
    match test:
        case ast.Name(id=name) if name in held:
            return name
        case ast.Compare(ops=[ast.In()], comparators=[ast.Name(id=name)]) if name in held:
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if attr in _ASKS and name in held:
            return name
        case _:
            return None


def _is_changed(name: str, function: Function) -> bool:
    text = ast.unparse(function.node)
    signs = (".add(", ".append(", "[", ".acquire(", ".update(", ".setdefault(", " = ")
    return f"with {name}:" in text or any(f"{name}{sign}" in text for sign in signs)


def _memories(survey: Survey) -> set[str]:
    """The functions whose results one process remembers, and that change something outside."""
    return {
        function.name
        for module in survey.project.loaded
        if "functools" in module.source.text
        for function in module.functions.values()
        if any(name in _MEMORIES for name, _ in function.decorators)
        and any(effect in _LASTING for _, effect in effects_of(function))
    }


def _remembered(function: Function, memories: set[str], tasks: Sequence[Task]) -> Iterator[Found]:
    for step in function.calls:
        if step.name in memories:
            yield function.found(
                step.call,
                f"{step.word!r} changes something once in each process: the cache that keeps task "
                f"{tasks[0].short!r} from doing it again is not there in the others, nor after a restart",
            )


def _local_cache(survey: Survey) -> str | None:
    """The default cache of Django, where it is one of a single process; None where it is shared or not known."""
    found = survey.project.django_setting("CACHES")
    if found is None:
        return None
    caches: Any = survey.value(found[1], found[0])
    default = caches.get("default") if isinstance(caches, dict) else None
    backend = default.get("BACKEND") if isinstance(default, dict) else None
    return backend.rpartition(".")[2] if isinstance(backend, str) and backend.endswith(_LOCAL_CACHES) else None


def _locked_in(local: str, function: Function, survey: Survey, tasks: Sequence[Task]) -> Iterator[Found]:
    for lock in locks_of(function, survey):
        if lock.step.receiver == "django.core.cache.cache":
            yield function.found(
                lock.step.call,
                f"the default cache is a {local}, which one process has to itself: another process that runs task "
                f"{tasks[0].short!r} takes the same lock",
            )


def _lock_files(function: Function, tasks: Sequence[Task]) -> Iterator[Found]:
    """A file that is looked for and then made."""
    made = {ast.dump(path) for step in function.calling(_MAKES) if (path := _path(step.call, function)) is not None}
    for _, branch in function.branches:
        for node in ast.walk(branch.test) if isinstance(branch.body[-1], ast.Return) else ():
            if not isinstance(node, ast.Call) or function.name_of(node).rpartition(".")[2] not in _EXISTS:
                continue
            path = _path(node, function)
            if path is not None and ast.dump(path) in made and _LOCK_FILE.search(_text(path, function)):
                yield function.found(
                    branch.test,
                    f"this file is on the disk of one machine: task {tasks[0].short!r} runs on others beside it, and "
                    "after a kill the file stays and the work is never done again",
                )


def _path(call: ast.Call, function: Function) -> ast.expr | None:
    """The path of `open(path)`, `exists(path)`, `path.touch()` and `Path(path).exists()`."""
    match call.func:
        case ast.Attribute(value=ast.Call(args=[path, *_])):
            return path
        case ast.Attribute(value=ast.Name(id=name)) if name in function.assigned or name in function.module.constants:
            return call.func.value
        case _:
            return call.args[0] if call.args else None


def _text(path: ast.expr, function: Function) -> str:
    values: list[ast.expr] = []
    if isinstance(path, ast.Name):
        constant = function.module.constants.get(path.id)
        values = [*function.assigned.get(path.id, []), *([constant] if constant is not None else [])]
    return " ".join(ast.unparse(each) for each in [path, *values])


RULE = Rule(
    code="EO308",
    name="process-local-guard",
    severity=Severity.ERROR,
    family=Family.LOCKS,
    summary="A task gives up because of what its own process remembers",
    check=check,
)
