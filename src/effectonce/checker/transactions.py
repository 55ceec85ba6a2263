"""Which code runs inside a transaction of the database, and what it writes there."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from effectonce.checker.effects import sql_of
from effectonce.checker.module import Function
from effectonce.checker.walk import Frame, Kind, Step

_ATOMIC: Final = re.compile(
    r"(^|\.)(transaction\.)?atomic(\(\))?$|(^|\.)(commit_on_success|commit_manually|in_transaction|xact|xact_atomic)(\(\))?$"
)
_BEGIN: Final = re.compile(
    r"(session|db|engine|conn|connection|sessionmaker|Session)(\(\)){0,2}(\.session)?(\(\))?\.begin(_nested)?\(\)$"
)
_WRITES: Final = {
    "save",
    "asave",
    "create",
    "acreate",
    "bulk_create",
    "bulk_update",
    "update",
    "get_or_create",
    "update_or_create",
    "aget_or_create",
    "aupdate_or_create",
    "delete",
    "add",
    "set",
    "add_all",
    "merge",
    "flush",
    "create_user",
}
_WRITING_SQL: Final = re.compile(r"^\s*(insert|update|delete|merge)\b", re.IGNORECASE)
_SESSION: Final = re.compile(
    r"session(\(\))?(\.begin\(\))?$|(^|\.)db(\.session)?$|(sessionmaker|scoped_session)\(\)(\(\))?(\.begin\(\))?$",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def is_atomic(name: str) -> bool:
    """Tell whether a context of this name is a transaction of Django."""
    return _ATOMIC.search(name) is not None


@lru_cache(maxsize=4096)
def is_session_begin(name: str) -> bool:
    """Tell whether a context of this name is a transaction of SQLAlchemy."""
    return _BEGIN.search(name) is not None


def atomic_frame(step: Step) -> Frame | None:
    """The innermost transaction of Django around *step*, as long as no code that runs later is between."""
    return _transaction(step.frame, is_atomic)


def session_frame(step: Step) -> Frame | None:
    """The innermost `session.begin()` around *step*."""
    return _transaction(step.frame, is_session_begin)


def _transaction(frame: Frame | None, begins: Callable[[str], bool]) -> Frame | None:
    while frame is not None and frame.kind is not Kind.LAMBDA:
        if frame.kind is Kind.WITH and any(map(begins, frame.names)):
            return frame
        frame = frame.parent
    return None


def writes_before(step: Step, frame: Frame, function: Function) -> Iterator[Step]:
    """The writes to the database in *frame* that come before *step*."""
    for other in function.calls:
        if other.index >= step.index:
            return
        if other.within(frame) and is_write(other) and not exclusive(other, step):
            yield other


def is_write(step: Step) -> bool:
    """Tell whether a call writes to the database."""
    word, receiver = step.word, step.receiver
    if word in {"update", "add", "set", "delete", "create"}:
        return ".objects" in receiver or receiver.endswith("_set") or _SESSION.search(receiver) is not None
    if word in _WRITES:
        return bool(receiver)
    sql = sql_of(step)
    return sql is not None and _WRITING_SQL.search(sql) is not None


def is_session(receiver: str) -> bool:
    """Tell whether a dotted name is a session of SQLAlchemy."""
    return _SESSION.search(receiver) is not None


def exclusive(one: Step, other: Step) -> bool:
    """Tell whether only one of two steps can happen in one run of the body."""
    mine = {(frame.kind, id(frame.node)) for frame in one.frames()}
    for frame in other.frames():
        against = {Kind.IF: Kind.ELSE, Kind.ELSE: Kind.IF}.get(frame.kind)
        if against is not None and (against, id(frame.node)) in mine:
            return True
    return _leaves_before(one, other)


def _leaves_before(one: Step, other: Step) -> bool:
    """Tell whether the block that *one* stands in leaves the body, and *other* stands outside of it."""
    around = {id(frame.node) for frame in other.frames()}
    for frame in one.frames(Kind.IF, Kind.ELSE, Kind.EXCEPT):
        if id(frame.node) in around:
            continue
        body = _block(frame)
        if body and isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break):
            return True
    return False


def _block(frame: Frame) -> list[ast.stmt]:
    node = frame.node
    if isinstance(node, ast.If):
        return node.body if frame.kind is Kind.IF else node.orelse
    return node.body if isinstance(node, ast.ExceptHandler) else []
