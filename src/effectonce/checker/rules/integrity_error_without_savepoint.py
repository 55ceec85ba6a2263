"""EO411: after an IntegrityError the whole transaction is broken, unless a savepoint took it."""

import ast
from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import catches_duplicate
from effectonce.checker.policies import transactional
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.transactions import atomic_frame, is_write
from effectonce.checker.walk import Kind, Step


def check(survey: Survey) -> Iterator[Found]:
    """Look for caught errors of writes in Transactional bodies."""
    for task in transactional(survey):
        for function in survey.bodies(task):
            for step in function.calls:
                clause = _clause(step)
                if clause is not None:
                    yield function.found(
                        clause,
                        f"the write of line {step.call.lineno} runs in the transaction of task {task.short!r}; after "
                        "its error the database refuses all that follows, the ledger's entry too: put the write into "
                        "an atomic block of its own",
                    )


def _clause(step: Step) -> ast.ExceptHandler | None:
    if ".objects" not in step.name or not is_write(step) or "get_or_create" in step.name:
        return None
    for frame in step.frames(Kind.TRY):
        if isinstance(frame.node, ast.Try):
            clause = next((each for each in frame.node.handlers if catches_duplicate(each)), None)
            inner = atomic_frame(step)
            if clause is not None and (inner is None or not _is_inside(inner.node, frame.node)):
                return clause
    return None


def _is_inside(node: ast.AST, around: ast.AST) -> bool:
    return any(each is node for each in ast.walk(around))


RULE = Rule(
    code="EO411",
    name="integrity-error-without-savepoint",
    severity=Severity.ERROR,
    family=Family.DATABASE,
    summary="A Transactional body catches an IntegrityError without a savepoint",
    check=check,
)
