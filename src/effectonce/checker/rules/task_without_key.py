"""EO101: a task that moves money, and nothing in it says which movement it is."""

from collections.abc import Iterator

from effectonce.checker.effects import MONEY_MODELS, Effect, effects_of, is_insert
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import is_answered
from effectonce.checker.lookups import inserted_model
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.walk import Step


def check(survey: Survey) -> Iterator[Found]:
    """Look for payments and entries of money in tasks that name no key and never ask about earlier work."""
    for task in survey.tasks:
        if is_answered(task, survey):
            continue
        first = next(
            (
                (function, step)
                for function in survey.bodies(task)
                for step, effect in effects_of(function)
                if _moves_money(step, effect, function)
            ),
            None,
        )
        if first is not None:
            function, step = first
            yield task.module.found(
                task.node,
                f"task {task.short!r} moves money ({function.module.source.path.name}:{step.call.lineno}), and nothing "
                "names the movement: a message that arrives twice moves it twice",
            )


def _moves_money(step: Step, effect: Effect, function: Function) -> bool:
    if effect is Effect.PAYMENT:
        return True
    if not is_insert(step):
        return False
    model = inserted_model(step, function)
    return model is not None and MONEY_MODELS.search(model) is not None


RULE = Rule(
    code="EO101",
    name="task-without-key",
    severity=Severity.ERROR,
    family=Family.KEYS,
    summary="A task moves money and names no key",
    check=check,
)
