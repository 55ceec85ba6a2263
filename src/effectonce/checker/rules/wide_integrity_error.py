"""EO407: not every IntegrityError is a duplicate."""

import ast
from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import catches_duplicate
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.transactions import is_write
from effectonce.checker.walk import Kind


def check(survey: Survey) -> Iterator[Found]:
    """Look for clauses that take any IntegrityError of several writes for a duplicate."""
    for function, tasks in survey.reached:
        if "except" not in function.text:
            continue
        attempts = {id(frame.node): frame.node for step in function.steps for frame in step.frames(Kind.TRY)}
        for node in attempts.values():
            if not isinstance(node, ast.Try):
                continue
            clause = next((each for each in node.handlers if catches_duplicate(each) and _gives_up(each)), None)
            writes = [
                step
                for step in function.calls
                if is_write(step) and any(frame.node is node for frame in step.frames(Kind.TRY))
            ]
            if clause is not None and len(writes) > 1:
                yield function.found(
                    clause,
                    f"{len(writes)} writes stand in this try, and any error of any of them is taken for a duplicate: "
                    f"task {tasks[0].short!r} may lose its work without a word",
                )


def _gives_up(clause: ast.ExceptHandler) -> bool:
    text = ast.unparse(clause)
    if "constraint" in text or ".orig" in text or "diag" in text:
        return False
    return all(
        isinstance(each, ast.Pass | ast.Continue)
        or (isinstance(each, ast.Return) and (each.value is None or isinstance(each.value, ast.Constant)))
        for each in clause.body
    )


RULE = Rule(
    code="EO407",
    name="wide-integrity-error",
    severity=Severity.WARNING,
    family=Family.DATABASE,
    summary="Any IntegrityError of several writes is taken for a duplicate",
    check=check,
)
