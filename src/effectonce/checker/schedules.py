"""The entries of the schedule of beat."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from effectonce.checker.module import Module
from effectonce.checker.names import last
from effectonce.checker.survey import Survey
from effectonce.checker.tasks import Task


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One entry: the task, if the project has it, and whether it is given arguments."""

    module: Module
    node: ast.AST
    task: Task | None
    has_arguments: bool


def entries(survey: Survey) -> Iterator[Entry]:
    """The entries of `beat_schedule`, of `add_periodic_task` and of periodic decorators."""
    for setting in survey.configuration.places("beat_schedule"):
        if isinstance(setting.node, ast.Dict):
            for value in setting.node.values:
                if isinstance(value, ast.Dict):
                    yield _of_dict(value, setting.module, survey)
    for module in survey.project.modules:
        if "add_periodic_task" in module.source.text:
            yield from _added(module, survey)
    for task in survey.tasks:
        if "run_every" in task.options:
            yield Entry(task.module, task.node, task, has_arguments=False)


def _of_dict(node: ast.Dict, module: Module, survey: Survey) -> Entry:
    pairs = {
        key.value: value for key, value in zip(node.keys, node.values, strict=True) if isinstance(key, ast.Constant)
    }
    named = survey.value(pairs.get("task"), module)
    task = survey.task(named) if isinstance(named, str) else None
    return Entry(module, pairs.get("task", node), task, has_arguments="args" in pairs or "kwargs" in pairs)


def _added(module: Module, survey: Survey) -> Iterator[Entry]:
    for function in module.functions.values():
        for step in function.calls:
            if step.word != "add_periodic_task" or len(step.call.args) < 2:  # noqa: PLR2004 - schedule, signature
                continue
            signature = step.call.args[1]
            name = function.name_of(signature)
            if isinstance(signature, ast.Call) and last(name) in {"s", "si", "signature"}:
                task = survey.task(name.rpartition(".")[0])
                yield Entry(module, step.call, task, has_arguments=bool(signature.args or signature.keywords))
