"""A program that uses the public names as their pages show them. Type checkers read it; nobody runs it."""

from datetime import timedelta
from typing import Any, assert_type

from celery import Celery
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.orm import Session, sessionmaker

from effectonce import (
    MESSAGE,
    Done,
    EffectBusy,
    EffectKeyReused,
    EffectOnce,
    EffectOnceError,
    Exclusive,
    Failed,
    Leased,
    LedgerUnavailable,
    Natural,
    NotDone,
    Transactional,
    Unique,
    Unknown,
)
from effectonce.testing import NotOnce, Proof

engine = create_engine("sqlite://")
app: Any = Celery("shop")
once = EffectOnce(app, ledger=engine, keep_seconds=86400, mode="enforce")
later = EffectOnce(ledger=sessionmaker(engine))
later.init_app(app)

by_template = Transactional("charge:{order_id}", remember=[ValueError], keep=timedelta(days=30), on_duplicate="raise")
by_callable = Leased(lambda order_id: f"receipt:{order_id}", lease=30, on_unknown="hold", scope="shop.receipt")
by_message = Leased(MESSAGE, at_send=Unique(until="done"))
no_overlap = Exclusive("sync", on_busy="follow", lease=timedelta(minutes=1))
by_meaning = Natural()
one_send = Unique("report:{day}", until=timedelta(hours=1))


def ask(effect: Any, step: str) -> Done | NotDone | Unknown:
    """What `reconcile` is."""
    return Done("r-1") if effect.fence and step else Unknown()


reconciled = Leased("pay:{order_id}", reconcile=ask)


@app.task(once=by_template)
def charge(order_id: int, amount: int) -> str:
    """A body in a transaction."""
    assert_type(once.session, Session)
    assert_type(once.connection, Connection)
    once.connection.execute(text("insert into charges values (:a)"), {"a": amount})
    return f"charged {amount}"


@app.task(once=by_callable)
def receipt(order_id: int) -> str:
    """A body in steps."""
    effect = once.effect
    assert_type(effect.fence, int)
    assert_type(effect.tick, str | None)
    sent = effect.step("mail", str.upper, f"order {order_id}")
    assert_type(sent, str)
    assert_type(effect.options(on_unknown="skip").step("log", len, sent), int)
    effect.ensure_current()
    with effect.transaction() as session:
        session.execute(text("select 1"))
    return str(effect.idempotency_key("mail"))


def outside(session: Session) -> None:
    """Code that is no task."""
    with once.outbox(session):
        charge.delay(7, amount=100)
    with once.bypassed(session=session):
        charge(7, 100)
    try:
        charge(7, 100)
    except (EffectBusy, EffectKeyReused, LedgerUnavailable) as error:
        assert_type(error.code, str)
    except EffectOnceError as error:
        assert_type(error.page, str)


def person(key: str) -> None:
    """What a person does at night."""
    for seen in once.entries.find(key):
        assert_type(seen.entry.key, str)
    once.entries.settle(key, Done("r-1"))
    once.entries.settle(key, Failed("refused"))
    once.entries.rerun(key)


def test_charge(effects: Any) -> None:
    """What a test does."""
    try:
        proof: Proof = effects.prove_once(charge, (7, 100), database=engine)
    except NotOnce as error:
        raise SystemExit(str(error)) from error
    assert_type(proof.trials, int)
