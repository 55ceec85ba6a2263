"""EO103: a key that holds the time, the number of the try or the name of the machine differs in each run."""

import ast
from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.flows import Flow
from effectonce.checker.keyuses import KeyUse, key_uses
from effectonce.checker.names import last, words
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey

_CLOCKS: Final = {"now", "utcnow", "time_ns", "perf_counter", "monotonic", "getpid", "gethostname"}
_KEY_WORDS: Final = {"key", "token", "ref", "reference", "hash", "digest", "idempotency", "dedup", "fingerprint"}
_THROTTLES: Final = ("rate", "throttl", "limit", "bucket", "quota")


def check(survey: Survey) -> Iterator[Found]:
    """Follow clocks and counters of tries into keys."""
    for function, tasks in survey.reached:
        uses = list(key_uses(function))
        flow = Flow(function, survey, _is_clock) if uses else None
        for use in uses:
            if flow is not None and flow.carries(use.key) and _names_work(use):
                yield function.found(
                    use.key,
                    "this key holds the time, the number of the try or the machine, so each run of task "
                    f"{tasks[0].short!r} has another one; let the sender pass the instant that is meant",
                )


def _is_clock(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Attribute):
        return ast.unparse(node).endswith("request.retries")
    if isinstance(node, ast.Call) and node.args and last(name) == "now" and isinstance(node.args[0], ast.Constant):
        return False
    return last(name) in _CLOCKS or name in {"time.time", "datetime.datetime.now"}


def _names_work(use: KeyUse) -> bool:
    text = ast.unparse(use.key).lower()
    if any(word in text for word in _THROTTLES):
        return False
    if use.column:
        return "__" not in use.column and bool(words(use.column) & _KEY_WORDS)
    return use.how != "lookup" or use.step.name.endswith((".get", ".exists"))


RULE = Rule(
    code="EO103",
    name="clock-in-key",
    severity=Severity.ERROR,
    family=Family.KEYS,
    summary="The key holds the time or the number of the try",
    check=check,
)
