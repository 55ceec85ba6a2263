"""The project as rules ask about it: its tasks, what each reaches, and where tasks are sent from."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from effectonce.checker.configuration import Configuration
from effectonce.checker.deployment.places import Deployment, Process
from effectonce.checker.deployment.reading import read_deployments
from effectonce.checker.findings import Found
from effectonce.checker.module import Function, Module
from effectonce.checker.numbers import seconds
from effectonce.checker.project import Project
from effectonce.checker.sends import SENDING, SENDS, Send, send_of
from effectonce.checker.source import Source
from effectonce.checker.tasks import Task, find_tasks
from effectonce.checker.walk import Step

DEEPEST_CALL: Final = 3
MOST_BODIES: Final = 40


@dataclass
class Survey:
    """Everything that rules may ask."""

    project: Project
    deployments: list[Deployment] = field(default_factory=list)

    unread: list[Found] = field(default_factory=list)

    @classmethod
    def of(cls, python: Iterable[Path], other: Iterable[Path]) -> "Survey":
        """Survey these files of Python and of deployments."""
        deployments, unread = read_deployments(other)
        return cls(Project(python), deployments, unread)

    @cached_property
    def configuration(self) -> Configuration:
        """The settings of Celery."""
        return Configuration(self.project)

    @cached_property
    def tasks(self) -> list[Task]:
        """Every task."""
        return find_tasks(self.project, self.configuration)

    @cached_property
    def _tasks_by_function(self) -> dict[str, Task]:
        out = {task.function.name: task for task in self.tasks}
        owners = [(task.function.owner, task) for task in self.tasks]
        return {**out, **{owner.name: task for owner, task in owners if owner is not None}}

    @cached_property
    def _tasks_by_name(self) -> dict[str, Task]:
        return {task.registered: task for task in self.tasks}

    def source(self, path: Path) -> Source | None:
        """The text of a file of the run."""
        found = self.project.sources.get(path)
        if found is None:
            found = next((each.source for each in self.deployments if each.path == path), None)
        return found

    @property
    def processes(self) -> Iterator[tuple[Deployment, Process]]:
        """Every process of every deployment."""
        for deployment in self.deployments:
            for process in deployment.processes:
                yield deployment, process

    def task(self, name: str) -> Task | None:
        """The task that a dotted name names, or that is registered under this name."""
        resolved = self.project.resolve(name).removesuffix("()")
        return self._tasks_by_function.get(resolved) or self._tasks_by_name.get(name)

    def is_guarded(self, function: Function) -> bool:
        """Tell whether *function* is the body of a task with a policy; what it sends belongs to the policy."""
        task = self.task(function.name) if function.is_task else None
        return task is not None and task.is_guarded

    def bodies(self, task: Task) -> list[Function]:
        """The function of *task* and the functions of the project that it reaches."""
        return self._reach(task.function)

    def _reach(self, start: Function) -> list[Function]:
        known = self._reached_from.get(start.name)
        if known is not None:
            return known
        found = {start.name: start}
        level = [start]
        for _ in range(DEEPEST_CALL):
            following = [each for function in level for each in self._called(function) if each.name not in found]
            level = []
            for each in following:
                if each.name not in found and len(found) < MOST_BODIES:
                    found[each.name] = each
                    level.append(each)
        self._reached_from[start.name] = list(found.values())
        return self._reached_from[start.name]

    @cached_property
    def _reached_from(self) -> dict[str, list[Function]]:
        return {}

    @cached_property
    def _calls_of(self) -> dict[str, list[Function]]:
        return {}

    def _called(self, function: Function) -> list[Function]:
        known = self._calls_of.get(function.name)
        if known is None:
            found = [self.project.called(call.name, function) for call in function.calls]
            known = [each for each in found if each is not None and each.name not in self._tasks_by_function]
            self._calls_of[function.name] = known
        return known

    @cached_property
    def reached(self) -> list[tuple[Function, list[Task]]]:
        """Each function that runs in tasks, with the tasks that reach it."""
        out: dict[str, tuple[Function, list[Task]]] = {}
        for task in self.tasks:
            for function in self.bodies(task):
                out.setdefault(function.name, (function, []))[1].append(task)
        return list(out.values())

    @cached_property
    def senders(self) -> list[tuple[Function, list[Send]]]:
        """Each function that sends tasks, with its sends."""
        out: list[tuple[Function, list[Send]]] = []
        for module in self.project.modules:
            if SENDING.search(module.source.text):
                sending = [function for function in module.functions.values() if function.calling(SENDS)]
                found = [(function, self.sends(function)) for function in sending]
                out.extend((function, sends) for function, sends in found if sends)
        return out

    def sends(self, function: Function) -> list[Send]:
        """The sends of one body."""
        return self.sends_in(function.calling(SENDS), function)

    def sends_in(self, steps: Sequence[Step], place: Function | Module) -> list[Send]:
        """The sends among *steps*."""
        found = [send_of(step, place, self) for step in steps if isinstance(step.node, ast.Call)]
        return [send for send in found if send is not None]

    @cached_property
    def all_sends(self) -> list[Send]:
        """Every send, of functions and of modules."""
        out = [send for _, sends in self.senders for send in sends]
        for module in self.project.modules:
            if SENDING.search(module.source.text):
                out.extend(self.sends_in(module.steps, module))
        return out

    def value(self, node: ast.expr | None, place: Function | Module) -> Any:
        """What *node* is worth in *place*."""
        return self.project.value(node, place)

    def seconds(self, node: ast.expr | None, place: Function | Module) -> float | None:
        """How many seconds *node* is worth in *place*, if that can be told."""
        return seconds(self.project.value(node, place))

    def delay_of(self, send: Send) -> tuple[ast.expr, float] | None:
        """The countdown or eta of *send* in seconds from now, with its expression."""
        place = send.function or send.module
        if "countdown" in send.options:
            node = send.options["countdown"]
            worth = self.seconds(node, place)
            return (node, worth) if worth is not None else None
        node = send.options.get("eta") or ast.Constant(None)
        worth = self._from_now(node, place)
        return (node, worth) if worth is not None else None

    def _from_now(self, node: ast.expr, place: Function | Module) -> float | None:
        """How far `now() + timedelta(...)` is away."""
        if isinstance(node, ast.Name) and isinstance(place, Function):
            values = place.assigned.get(node.id, [])
            return self._from_now(values[0], place) if len(values) == 1 else None
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
            return None
        for clock, offset in ((node.left, node.right), (node.right, node.left)):
            if _is_clock(clock):
                return self.seconds(offset, place)
        return None


def _is_clock(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    word = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return word in {"now", "utcnow", "localtime"}
