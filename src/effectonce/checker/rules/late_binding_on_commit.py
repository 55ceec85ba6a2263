"""EO503: a lambda looks at the loop's variable when it is called, and that is after the loop."""

import ast
from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.rule import Rule
from effectonce.checker.sends import is_after_commit
from effectonce.checker.survey import Survey
from effectonce.checker.walk import Kind, Step


def check(survey: Survey) -> Iterator[Found]:
    """Look for callbacks in loops that use what the loop changes."""
    for module in survey.project.modules:
        if "on_commit" not in module.source.text:
            continue
        for function in module.functions.values():
            for step in function.calls:
                if is_after_commit(step.name) and step.call.args and isinstance(step.call.args[0], ast.Lambda):
                    names = _free(step.call.args[0]) & _changing(step)
                    if names:
                        yield function.found(
                            step.call.args[0],
                            f"{', '.join(sorted(names))} is looked up when the callback runs, after the loop: every "
                            "callback sees the last one; use partial(...) or a default argument",
                        )


def _free(node: ast.Lambda) -> set[str]:
    arguments = node.args
    own = {each.arg for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    return {each.id for each in ast.walk(node.body) if isinstance(each, ast.Name)} - own


def _changing(step: Step) -> set[str]:
    """The names that the loops around *step* give new values to."""
    out: set[str] = set()
    for frame in step.frames(Kind.LOOP):
        if isinstance(frame.node, ast.For | ast.AsyncFor):
            out |= {each.id for each in ast.walk(frame.node.target) if isinstance(each, ast.Name)}
            for statement in frame.node.body:
                for each in ast.walk(statement):
                    if isinstance(each, ast.Assign):
                        out |= {target.id for target in each.targets if isinstance(target, ast.Name)}
    return out


RULE = Rule(
    code="EO503",
    name="late-binding-on-commit",
    severity=Severity.ERROR,
    family=Family.SENDING,
    summary="A callback of on_commit uses the variable of its loop",
    check=check,
)
