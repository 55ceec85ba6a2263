"""Where a body uses a value as the name of its work: to look it up, to claim it, to lock it, to tell a receiver."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from effectonce.checker.effects import sql_of
from effectonce.checker.module import Function, asked_once
from effectonce.checker.walk import Kind, Step

_STORE: Final = re.compile(
    r"(^|[._\[\]])(\w*redis\w*|\w*cache\w*|\w*valkey\w*|r|rds|kv|memcache\w*)(\(\))?(\[\])?$|redis\.\w+\(\)$",
    re.IGNORECASE,
)
_LOOKUPS: Final = {"filter", "filter_by", "get"}
_CLAIMS: Final = {"get_or_create", "aget_or_create", "update_or_create", "aupdate_or_create"}
_STORE_CLAIMS: Final = {"add", "setnx", "sadd", "sismember", "hsetnx", "exists"}
_USES: Final = frozenset({*_LOOKUPS, *_CLAIMS, *_STORE_CLAIMS, "lock", "Lock", "set", "execute", "executemany"})
_KEY_ARGUMENTS: Final = {"idempotency_key", "effect_key", "client_request_token", "client_token"}
_RECEIVING: Final = {*_KEY_ARGUMENTS, "headers"}
_SQL: Final = re.compile(r"^\s*(select|insert)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class KeyUse:
    """A key, how it is used, and as the value of which column or argument."""

    key: ast.expr
    step: Step
    how: str
    column: str = ""


@lru_cache(maxsize=4096)
def is_store(receiver: str) -> bool:
    """Tell whether a dotted name is a client of Redis or of a cache."""
    return _STORE.search(receiver) is not None


@asked_once
def key_uses(function: Function) -> list[KeyUse]:
    """Every use of a key in the body of *function*."""
    out: list[KeyUse] = []
    for step in function.calls:
        if step.word in _USES:
            out += _of_database(step)
            out += _of_store(step)
        if any(each.arg in _RECEIVING for each in step.call.keywords):
            out += _of_receiver(step)
    return out


def _of_database(step: Step) -> Iterator[KeyUse]:
    word = step.word
    if word in _CLAIMS:
        yield from (
            KeyUse(each.value, step, "claim", each.arg)
            for each in step.call.keywords
            if each.arg and each.arg != "defaults"
        )
    elif word in _LOOKUPS and (".objects" in step.name or "query" in step.name) and _decides(step):
        yield from (KeyUse(each.value, step, "lookup", each.arg) for each in step.call.keywords if each.arg)
    elif (
        (sql := sql_of(step)) is not None
        and len(step.call.args) > 1
        and _SQL.search(sql)
        and re.search(r"\bwhere\b|\bconflict\b", sql, re.IGNORECASE)
    ):
        values = step.call.args[1]
        listed = values.elts if isinstance(values, ast.Tuple | ast.List) else [values]
        yield from (KeyUse(each, step, "lookup") for each in listed)


def _decides(step: Step) -> bool:
    """Tell whether the answer is kept or tested once; a loop that draws until a value is free is no use of a key."""
    if any(isinstance(frame.node, ast.While) for frame in step.frames(Kind.LOOP)):
        return False
    return isinstance(step.statement, ast.If | ast.Assign | ast.AnnAssign | ast.Return)


def _of_store(step: Step) -> Iterator[KeyUse]:
    if not step.call.args:
        return
    word, receiver = step.word, step.receiver
    first = step.call.args[0]
    if word in {"lock", "Lock"} and (is_store(receiver) or "redis" in step.name.lower()):
        yield KeyUse(step.call.args[1] if word == "Lock" and len(step.call.args) > 1 else first, step, "lock")
    elif not is_store(receiver):
        return
    elif (word == "set" and any(each.arg == "nx" for each in step.call.keywords)) or word in _STORE_CLAIMS:
        yield KeyUse(first, step, "claim")
    elif word == "get" and _decides(step):
        yield KeyUse(first, step, "lookup")


def _of_receiver(step: Step) -> Iterator[KeyUse]:
    for each in step.call.keywords:
        if each.arg in _KEY_ARGUMENTS:
            yield KeyUse(each.value, step, "receiver", each.arg)
        elif each.arg == "headers" and isinstance(each.value, ast.Dict):
            pairs = zip(each.value.keys, each.value.values, strict=True)
            yield from (
                KeyUse(value, step, "receiver", "Idempotency-Key") for key, value in pairs if _is_key_header(key)
            )


def _is_key_header(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and "idempotency" in node.value.lower()
