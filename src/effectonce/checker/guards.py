"""Signs that a body asks whether its work is done already.

Rules that say "nothing keeps the second run away" must be sure of the "nothing". So whatever looks like a question
about earlier work counts as a guard here: a unique insert, a lock, a state that is tested, a key for the receiver.
"""

import ast
import re
from typing import Final

from effectonce.checker.effects import sql_of
from effectonce.checker.module import Function
from effectonce.checker.names import words
from effectonce.checker.survey import Survey
from effectonce.checker.tasks import Task
from effectonce.checker.walk import Kind, Step

_CLAIMS: Final = {
    "get_or_create",
    "aget_or_create",
    "update_or_create",
    "aupdate_or_create",
    "on_conflict_do_nothing",
    "on_conflict_do_update",
    "on_duplicate_key_update",
    "select_for_update",
    "with_for_update",
    "setnx",
    "merge",
}
GUARD_WORDS: Final = {
    "claim",
    "claims",
    "claimed",
    "idempotent",
    "idempotency",
    "dedupe",
    "dedup",
    "deduplicate",
    "once",
    "acquire",
    "lock",
    "locked",
    "lease",
    "mutex",
    "semaphore",
    "already",
    "processed",
    "seen",
    "exists",
    "duplicate",
    "upsert",
}
LOCK_WORDS: Final = {"acquire", "lock", "locked", "lease", "mutex", "semaphore"}
_DUPLICATES: Final = re.compile(r"IntegrityError|UniqueViolation|DuplicateKey|AlreadyExists|UniqueConstraint")
STATE_WORDS: Final = {
    "status",
    "state",
    "sent",
    "paid",
    "processed",
    "done",
    "finished",
    "completed",
    "complete",
    "delivered",
    "handled",
    "notified",
    "imported",
    "synced",
    "charged",
    "refunded",
    "published",
    "pending",
    "active",
    "at",
    "version",
    "exists",
    "already",
}
_SQL: Final = re.compile(
    r"on\s+conflict|on\s+duplicate|insert\s+(or\s+)?ignore|for\s+update|not\s+exists|advisory", re.IGNORECASE
)


def is_answered(task: Task, survey: Survey, *, by_locks: bool = True) -> bool:
    """Tell whether *task* or something that it reaches asks whether the work is done already.

    A lock counts unless *by_locks* is off: it keeps two runs apart, and knows nothing of a run that has ended.
    """
    if by_locks not in task.answered:
        task.answered[by_locks] = (
            task.is_guarded
            or (task.is_unique and by_locks)
            or any(has_guard(function, by_locks=by_locks) for function in survey.bodies(task))
        )
    return task.answered[by_locks]


def has_guard(function: Function, *, by_locks: bool = True) -> bool:
    """Tell whether the body of *function* asks about earlier work."""
    if by_locks not in function.guarded:
        function.guarded[by_locks] = _has_guard(function, by_locks=by_locks)
    return function.guarded[by_locks]


def _has_guard(function: Function, *, by_locks: bool) -> bool:
    counted = GUARD_WORDS if by_locks else GUARD_WORDS - LOCK_WORDS
    if any(words(name) & counted for name, _ in function.decorators):
        return True
    return any(_is_guard(step, counted, by_locks=by_locks) for step in function.steps)


def _is_guard(step: Step, counted: set[str], *, by_locks: bool) -> bool:
    match step.node:
        case ast.Call():
            if not by_locks and any(each.arg == "nx" for each in step.call.keywords):
                return False
            return is_claim(step, counted) or _asks_state(step)
        case ast.If() as branch:
            return _tests_state(branch.test)
        case _:
            return any(catches_duplicate(frame.node) for frame in step.frames(Kind.EXCEPT))


def is_claim(step: Step, counted: set[str] | None = None) -> bool:
    """Tell whether a call claims the work, or hands the receiver a key."""
    word = step.word.removesuffix("()")
    if word in _CLAIMS or words(word) & (GUARD_WORDS if counted is None else counted):
        return True
    if any(_names_key(each) for each in step.call.keywords):
        return True
    sql = sql_of(step)
    return sql is not None and _SQL.search(sql) is not None


def _names_key(each: ast.keyword) -> bool:
    if each.arg in {"ignore_conflicts", "update_conflicts", "nx", "idempotency_key", "effect_key"}:
        return True
    return each.arg == "headers" and "idempotency" in ast.dump(each.value).lower()


def _asks_state(step: Step) -> bool:
    if step.word not in {"filter", "exclude", "filter_by", "get", "where"}:
        return False
    return any(each.arg is not None and words(each.arg.replace("__", "_")) & STATE_WORDS for each in step.call.keywords)


def _tests_state(test: ast.expr) -> bool:
    for node in ast.walk(test):
        if isinstance(node, ast.Attribute) and words(node.attr) & (STATE_WORDS | GUARD_WORDS):
            return True
        if isinstance(node, ast.Name) and words(node.id) & (STATE_WORDS | GUARD_WORDS):
            return True
        if isinstance(node, ast.Attribute) and node.attr.startswith(("is_", "has_", "was_")):
            return True
    return False


def catches_duplicate(node: ast.AST) -> bool:
    """Tell whether a clause, or one of a `try`, catches what a unique constraint raises."""
    if isinstance(node, ast.Try):
        return any(catches_duplicate(each) for each in node.handlers)
    kind = node.type if isinstance(node, ast.ExceptHandler) else None
    return kind is not None and _DUPLICATES.search(ast.dump(kind)) is not None
