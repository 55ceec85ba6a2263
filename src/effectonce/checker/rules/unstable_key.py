"""EO105: a key whose text differs between processes, for the same work."""

import ast
from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.flows import Flow
from effectonce.checker.keyuses import key_uses
from effectonce.checker.names import last
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey


def check(survey: Survey) -> Iterator[Found]:
    """Follow digests and texts that are not stable into keys."""
    for function, tasks in survey.reached:
        uses = list(key_uses(function))
        flow = Flow(function, survey, _is_unstable) if uses else None
        for use in uses:
            if use.how != "lookup" and not use.column.endswith("token") and flow is not None and flow.carries(use.key):
                yield function.found(
                    use.key,
                    f"this key of task {tasks[0].short!r} is made of something whose text differs between processes "
                    "(a salted hash, an object, a set, JSON without sorted keys)",
                )


def _is_unstable(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if not isinstance(node, ast.Call):
        return False
    if name in {"hash", "id", "repr", "set", "frozenset", "pickle.dumps", "object"}:
        return not (node.args and isinstance(node.args[0], ast.Constant))
    if last(name) == "dumps" and "json" in name:
        sorts = any(each.arg == "sort_keys" for each in node.keywords)
        return not sorts and not (node.args and isinstance(node.args[0], ast.List | ast.Tuple | ast.Constant))
    return False


RULE = Rule(
    code="EO105",
    name="unstable-key",
    severity=Severity.ERROR,
    family=Family.KEYS,
    summary="The text of the key differs between processes",
    check=check,
)
