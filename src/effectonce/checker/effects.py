"""What a call changes outside of the task: rows, mails, requests, payments.

Only names are known, so this errs on the side of not knowing: what is listed here is an effect that happens twice if
the body runs twice.
"""

import ast
import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

from effectonce.checker.module import Function, asked_once
from effectonce.checker.names import before, last
from effectonce.checker.walk import Step


class Effect(StrEnum):
    """A kind of effect, in the words of a message."""

    INSERT = "inserts a row"
    RELATIVE = "adds to a value"
    MAIL = "sends a message to people"
    POST = "posts to another system"
    PAYMENT = "moves money"


_INSERTS: Final = {"create", "acreate", "bulk_create", "abulk_create", "insert_one", "insert_many"}
_SESSION: Final = re.compile(
    r"(^|[._])(db_?)?session(\(\))?$|(^|\.)db$|Session\(\)$|(sessionmaker|scoped_session)\(\)(\(\))?$", re.IGNORECASE
)
_SESSION_INSERTS: Final = {"add", "add_all", "bulk_save_objects", "bulk_insert_mappings"}
_INSERT_SQL: Final = re.compile(r"^\s*insert\s+into\b", re.IGNORECASE)
_SAFE_SQL: Final = re.compile(
    r"on\s+conflict|on\s+duplicate\s+key|insert\s+(or\s+)?ignore|where\s+not\s+exists", re.IGNORECASE
)
_RELATIVE_SQL: Final = re.compile(r"\bset\b.*?\b(\w+)\s*=\s*(?:\w+\.)?\1\s*[-+]", re.IGNORECASE | re.DOTALL)
_EXECUTES: Final = frozenset({"execute", "executemany", "raw", "exec_driver_sql"})
INSERTING: Final = frozenset({*_INSERTS, *_SESSION_INSERTS, *_EXECUTES, "save"})
"""The last words of calls that may insert a row."""

_MAILS: Final = {
    "send_mail",
    "send_mass_mail",
    "sendmail",
    "send_email",
    "send_templated_email",
    "send_templated_mail",
    "chat_postMessage",
    "send_sms",
}
_MAIL_METHODS: Final = {"email_user", "sendmail", "send_templated_mail", "chat_postMessage"}
_MAIL_LIBRARIES: Final = re.compile(
    r"(smtplib|boto3|sendgrid|flask_mail|postmarker|mailjet|twilio|slack_sdk|server|smtp)\b"
)
_MAIL_CLASSES: Final = re.compile(r"(Email|EmailMessage|EmailMultiAlternatives|Mail|AnymailMessage)\(\)$")
_CLIENTS: Final = re.compile(r"^(requests|httpx|aiohttp|urllib3|niquests)\b")
_POSTS: Final = {"post", "patch"}
_PAYMENT_SDKS: Final = re.compile(
    r"^(stripe|braintree|paypalrestsdk|razorpay|mollie|adyen|gocardless_pro|square|plaid)\b", re.IGNORECASE
)
_PAYMENT_VERBS: Final = {"create", "capture", "confirm", "sale", "refund", "charge", "pay", "cancel", "execute"}
_MONEY_VERBS: Final = re.compile(
    r"^(charge|refund|payout|pay|debit|credit|withdraw|pay_out|send_money|transfer_funds|transfer_money|capture_payment)"
    r"(_(card|order|customer|user|invoice|payment|account|wallet|money|amount|balance))?$"
)
MONEY_MODELS: Final = re.compile(
    r"(Charge|Payment|Payout|Refund|Transfer|Transaction|Ledger|LedgerEntry|Invoice|Credit|Debit|Withdrawal|Deposit)$"
)
_PAYMENT_STARTS: Final = ("create_", "charge_", "refund_")
_WORDS: Final = {
    *_INSERTS,
    *_SESSION_INSERTS,
    *_MAILS,
    *_MAIL_METHODS,
    *_POSTS,
    *_PAYMENT_VERBS,
    *_EXECUTES,
    *("save", "send", "request", "update", "values"),
}


@asked_once
def effects_of(function: Function) -> list[tuple[Step, Effect]]:
    """The calls of a body that change something, with what."""
    return [(step, effect) for step in function.calls if (effect := effect_of(step)) is not None]


@asked_once
def inserts_of(function: Function) -> list[Step]:
    """The calls of a body that insert a row."""
    return [step for step in function.calling(INSERTING) if is_insert(step)]


def effect_of(step: Step) -> Effect | None:
    """What the call *step* changes, or None."""
    name, word = step.name, step.word
    if not _may_change(word) or not isinstance(step.node, ast.Call):
        return None
    if is_payment(name) and not step.is_own:
        return Effect.PAYMENT
    if is_mail(name) and not step.is_own:
        return Effect.MAIL
    if is_post(step):
        return Effect.POST
    if is_insert(step):
        return Effect.INSERT
    if word in {"update", "values"} and _adds(step.call):
        return Effect.RELATIVE
    sql = sql_of(step)
    if sql is not None and _RELATIVE_SQL.search(sql):
        return Effect.RELATIVE
    return None


@lru_cache(maxsize=4096)
def _may_change(word: str) -> bool:
    return word in _WORDS or word.startswith(_PAYMENT_STARTS) or _MONEY_VERBS.match(word) is not None


def is_insert(step: Step) -> bool:
    """Tell whether a call inserts a row without asking whether there is one."""
    name, word, receiver = step.name, step.word, step.receiver
    if word in _INSERTS:
        if any(each.arg in {"ignore_conflicts", "update_conflicts"} for each in step.call.keywords):
            return False
        return ".objects" in name or receiver.endswith("_set") or word.startswith("insert_")
    if word in _SESSION_INSERTS:
        return _SESSION.search(receiver) is not None
    if word == "save" and receiver.endswith("()") and ".objects" not in receiver and not step.call.args:
        return is_model(receiver.removesuffix("()"))
    sql = sql_of(step)
    return sql is not None and _INSERT_SQL.search(sql) is not None and not _SAFE_SQL.search(sql)


@lru_cache(maxsize=4096)
def is_model(name: str) -> bool:
    """Tell whether *name* is the class of a Django model, as far as its module says."""
    return re.search(r"^[A-Z]\w+$|(^|\.)models\.(\w+\.)*[A-Z]\w+$", name) is not None


def sql_of(step: Step) -> str | None:
    """The text of the statement that a call executes."""
    if step.word not in _EXECUTES or not step.call.args:
        return None
    return text_of(step.call.args[0])


def text_of(node: ast.expr) -> str | None:
    """The text of a literal, also inside of `text(...)` and f-strings."""
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=values):
            return "".join(text_of(each) or "{}" for each in values)
        case ast.Call(args=[inner, *_]) if isinstance(node.func, ast.Name) and node.func.id in {"text", "SQL"}:
            return text_of(inner)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod()):
            return text_of(left)
        case _:
            return None


def is_mail(name: str) -> bool:
    """Tell whether a call of *name* sends a mail, an SMS or the like."""
    word, receiver = last(name), before(name)
    if word in _MAILS | _MAIL_METHODS:
        is_function = "()" not in receiver and "." in receiver
        return not receiver or is_function or word in _MAIL_METHODS or _MAIL_LIBRARIES.match(name) is not None
    if word == "send":
        return _MAIL_CLASSES.search(receiver) is not None
    return name.endswith(".messages.create")


def is_post(step: Step) -> bool:
    """Tell whether a call is an HTTP request that is not idempotent."""
    name, word = step.name, step.word
    if not _CLIENTS.search(name):
        return False
    if word == "request":
        method = text_of(step.call.args[0]) if step.call.args else None
        return method is not None and method.lower() in _POSTS
    return word in _POSTS


def is_payment(name: str) -> bool:
    """Tell whether a call of *name* moves money."""
    word = last(name)
    if _PAYMENT_SDKS.search(name):
        return word in _PAYMENT_VERBS or word.startswith(_PAYMENT_STARTS)
    return _MONEY_VERBS.match(word) is not None


def _adds(call: ast.Call) -> bool:
    """Tell whether `update(x=F("x") + n)` or `update({"x": T.x + n})` gives a value that depends on the old one."""
    pairs: list[tuple[object, ast.expr]] = [(each.arg, each.value) for each in call.keywords]
    for argument in call.args:
        if isinstance(argument, ast.Dict):
            pairs += zip(map(_column, argument.keys), argument.values, strict=True)
    return any(
        isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Add | ast.Sub)
        and any(_is_old_value(side, column) for side in (value.left, value.right))
        for column, value in pairs
    )


def _column(node: ast.expr | None) -> object:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Attribute(attr=name):
            return name
        case _:
            return None


def _is_old_value(node: ast.expr, column: object) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="F") | ast.Attribute(attr="F"), args=[ast.Constant(value=name)]):
            return bool(name == column)
        case ast.Attribute(attr=name):
            return name == column
        case _:
            return False
