"""Which functions and classes are Celery tasks, and with which options.

A task is a function under `@app.task`, `@shared_task`, `@celery.task`, a partial of one of these, or a decorator of the
project that uses one of these; or a class derived from `Task` with a `run`. Its options come from the decorator, from
its base class, from `task_annotations`, from the settings, in this order.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from effectonce.checker.configuration import Configuration
from effectonce.checker.module import Class, Function, Module
from effectonce.checker.names import before, dotted, last
from effectonce.checker.numbers import UNKNOWN, seconds
from effectonce.checker.project import Project

_SHARED: Final = {"celery.shared_task", "celery.task", "celery.decorators.task", "celery.task.task"}
_PERIODIC: Final = {"celery.decorators.periodic_task", "celery.task.periodic_task", "celery.task.base.periodic_task"}
_APPS: Final = re.compile(r"(^|[._])(celery|celery_app|app|capp|current_app)(\(\))?$", re.IGNORECASE)
_OTHER_TASKS: Final = re.compile(
    r"^(invoke|fabric|airflow|prefect|luigi|locust|huey|dramatiq|rq|waffle|ray|taskiq|procrastinate|behave|crewai)\b"
)
_SETTINGS_OF_OPTIONS: Final = {
    "acks_late": "task_acks_late",
    "reject_on_worker_lost": "task_reject_on_worker_lost",
    "time_limit": "task_time_limit",
    "soft_time_limit": "task_soft_time_limit",
    "ignore_result": "task_ignore_result",
    "acks_on_failure_or_timeout": "task_acks_on_failure_or_timeout",
    "serializer": "task_serializer",
}
_BASES: Final = {
    "celery.Task",
    "celery.app.task.Task",
    "celery.task.Task",
    "celery.task.base.Task",
    "celery.Celery().Task",
}


@dataclass(eq=False)
class Task:
    """A task of the project."""

    project: Project
    configuration: Configuration
    function: Function
    options: dict[str, ast.expr]
    node: ast.AST
    bases: list[Class] = field(default_factory=list)
    base_names: set[str] = field(default_factory=set)
    answered: dict[bool, bool] = field(default_factory=dict)
    """What `guards.is_answered` said, with and without locks."""

    @property
    def module(self) -> Module:
        """Where it is defined."""
        return self.function.module

    @property
    def short(self) -> str:
        """How messages name it."""
        owner = self.function.owner
        return owner.node.name if owner is not None and self.node is owner.node else self.function.node.name

    @cached_property
    def registered(self) -> str:
        """Its name for Celery."""
        given = self.project.value(self.options.get("name"), self.module)
        return given if isinstance(given, str) else self.function.name.removesuffix(".run")

    def expression(self, option: str) -> tuple[Module, ast.expr] | None:
        """What the definition of the task, or its base class, says of *option*."""
        if option in self.options:
            return self.module, self.options[option]
        for base in self.bases:
            if option in base.attributes:
                return base.module, base.attributes[option]
        return None

    def option(self, name: str) -> Any:
        """What holds for the option *name* in the end; None where nobody says anything."""
        found = self.expression(name)
        if found is not None:
            return self.project.value(found[1], found[0])
        annotations = self.configuration.value("task_annotations", self.module)
        if isinstance(annotations, dict):
            for key in (self.registered, "*"):
                given = annotations.get(key)
                if isinstance(given, dict) and name in given:
                    return given[name]
        setting = _SETTINGS_OF_OPTIONS.get(name)
        return self.configuration.value(setting, self.module) if setting is not None else None

    def has(self, option: str) -> bool:
        """Tell whether the definition names *option* with something else than None or False."""
        found = self.expression(option)
        return found is not None and not (isinstance(found[1], ast.Constant) and not found[1].value)

    @cached_property
    def is_late(self) -> bool:
        """Tell whether its message is acknowledged after the run."""
        return self.option("acks_late") is True

    @cached_property
    def is_guarded(self) -> bool:
        """Tell whether it carries a policy of effectonce, or a decorator that names the like."""
        return (
            self.has("once")
            or self._is_guarded_by_annotations
            or any(re.search(r"idempot|exactly_?once|effect_?once|dedup", name, re.IGNORECASE) for name in self._marks)
            or bool({"celery_once.QueueOnce", "celery_heimdall.HeimdallTask"} & self.base_names and self.has("once"))
        )

    @property
    def _is_guarded_by_annotations(self) -> bool:
        annotations = self.configuration.value("task_annotations", self.module)
        given = annotations.get(self.registered) if isinstance(annotations, dict) else None
        return isinstance(given, dict) and "once" in given

    @cached_property
    def sends_after_commit(self) -> bool:
        """Tell whether its base class waits for the commit before it sends."""
        methods = [base.methods.get(name) for base in self.bases for name in ("apply_async", "delay")]
        return any("on_commit" in each.text for each in methods if each is not None)

    @cached_property
    def is_unique(self) -> bool:
        """Tell whether a lock of its base class keeps a second run away while the first one runs."""
        text = " ".join([*self._marks, *self.base_names])
        return re.search(r"QueueOnce|Singleton|[Uu]nique|Heimdall|Single|Lock|no_?overlap|mutex", text) is not None

    @cached_property
    def _marks(self) -> list[str]:
        return [name for name, _ in self.function.decorators] + list(self.base_names)

    @cached_property
    def retries(self) -> bool:
        """Tell whether it asks to be run again after a failure."""
        return (
            self.has("autoretry_for")
            or any(call.name.endswith("$task.retry") for call in self.function.calls)
            or any(
                call.name in {f"{self.function.name}.retry", "celery.current_task.retry"}
                for call in self.function.calls
            )
        )

    @property
    def time_limit(self) -> float | None:
        """The longest run in seconds: the smaller of the limits, None where there is none or it is not known."""
        limits = [seconds(self.option(name)) for name in ("time_limit", "soft_time_limit")]
        hard, soft = limits
        return hard if hard is not None else soft

    @property
    def has_unknown_limit(self) -> bool:
        """Tell whether a limit is set whose value is not known."""
        return any(self.option(name) is UNKNOWN for name in ("time_limit", "soft_time_limit"))


def find_tasks(project: Project, configuration: Configuration) -> list[Task]:
    """Every task of the project, each once."""
    finder = _Finder(project, configuration)
    tasks = [task for module in project.modules for task in finder.tasks(module)]
    for task in tasks:
        task.function.is_task = True
    return tasks


class _Finder:
    def __init__(self, project: Project, configuration: Configuration) -> None:
        self._project = project
        self._configuration = configuration
        self._wrappers: dict[str, bool] = {}

    def tasks(self, module: Module) -> Iterator[Task]:
        for function in module.functions.values():
            for name, node in function.decorators:
                options = self._options(name, node, module)
                if options is not None:
                    yield self._task(function, options, node)
                    break
        for cls in module.classes.values():
            run = cls.methods.get("run")
            if run is not None and self._is_task_class(cls):
                yield Task(
                    self._project,
                    self._configuration,
                    run,
                    {},
                    cls.node,
                    list(self._project.lineage(cls)),
                    self._project.ancestors(cls),
                )

    def _task(self, function: Function, options: dict[str, ast.expr], node: ast.expr) -> Task:
        bases: list[Class] = []
        names: set[str] = set()
        if "base" in options:
            name = dotted(options["base"], function.module.scope)
            names.add(name)
            cls = self._project.cls(name)
            if cls is not None:
                bases = list(self._project.lineage(cls))
                names |= self._project.ancestors(cls)
        return Task(self._project, self._configuration, function, options, node, bases, names)

    def _options(self, name: str, node: ast.expr, module: Module) -> dict[str, ast.expr] | None:
        """The options that a decorator gives, or None if it makes no task."""
        given = {each.arg: each.value for each in node.keywords if each.arg} if isinstance(node, ast.Call) else {}
        if isinstance(node, ast.Call):
            name = dotted(node.func, module.scope)
        raw = dotted(node.func if isinstance(node, ast.Call) else node, module.names)
        if self._makes_tasks(name) or self._makes_tasks(raw):
            return given
        alias = self._partial(node, module)
        return {**alias, **given} if alias is not None else None

    def _partial(self, node: ast.expr, module: Module) -> dict[str, ast.expr] | None:
        """The options of `late_task = partial(app.task, acks_late=True)` and of a project's own decorators."""
        expression = node.func if isinstance(node, ast.Call) else node
        found: tuple[Module, ast.expr] | None = None
        if isinstance(expression, ast.Name | ast.Attribute):
            raw = dotted(expression, module.names)
            if isinstance(expression, ast.Name) and expression.id in module.constants:
                found = module, module.constants[expression.id]
            else:
                found = self._project.constant(raw)
        if found is not None and isinstance(found[1], ast.Call) and last(dotted(found[1].func, {})) == "partial":
            call, place = found[1], found[0]
            if call.args and self._makes_tasks(dotted(call.args[0], place.scope)):
                return {each.arg: each.value for each in call.keywords if each.arg}
        wrapper = self._project.function(dotted(expression, module.scope))
        return {} if wrapper is not None and self._is_wrapper(wrapper) else None

    def _is_wrapper(self, function: Function) -> bool:
        """Tell whether a decorator of the project makes tasks."""
        known = self._wrappers.get(function.name)
        if known is None:
            self._wrappers[function.name] = False
            known = function.module in self._project.modules and self._has_task_call(function)
            self._wrappers[function.name] = known
        return known

    def _has_task_call(self, function: Function) -> bool:
        bodies = [function, *function.nested.values()]
        return any(self._makes_tasks(call.name) for body in bodies for call in body.calls) or any(
            self._makes_tasks(name) for body in function.nested.values() for name, _ in body.decorators
        )

    def _makes_tasks(self, name: str) -> bool:
        name = name.removesuffix("()")
        if name in _SHARED or name in _PERIODIC:
            return True
        if _OTHER_TASKS.match(name):
            return False
        word = last(name)
        if word == "shared_task":
            return True
        receiver = before(name)
        if word not in {"task", "periodic_task"}:
            return False
        return _APPS.search(receiver) is not None or self._is_app(receiver)

    def _is_app(self, receiver: str) -> bool:
        """Tell whether *receiver* is an instance of a class that the project derives from `Celery`."""
        cls = self._project.cls(receiver.removesuffix("()")) if receiver.endswith("()") else None
        return cls is not None and "celery.Celery" in self._project.ancestors(cls)

    def _is_task_class(self, cls: Class) -> bool:
        bases = self._project.ancestors(cls)
        return bool(bases & _BASES) or any(base.endswith((".Celery().Task", "celery_app.Task")) for base in bases)
