"""A catalogue of tasks that take effect once; the proof must pass every one."""

import time

import pytest
import sqlalchemy as sa
from celery import Celery
from sqlalchemy.orm import Session

from effectonce import EffectOnce, Leased, Transactional
from effectonce.testing.effects import Effects
from tests.testing.bank import Account, Charge, Stamped


def test_setting_instead_of_adding(app: Celery, bank: sa.Engine, effects: Effects) -> None:
    @app.task(name="fix")
    def fix(owner: str) -> None:
        with bank.begin() as connection:
            connection.execute(sa.update(Account).where(Account.owner == owner).values(balance=50))

    proof = effects.prove_once(fix, ("ann",))
    assert [point.split()[0] for point in proof.points] == ["UPDATE", "COMMIT"]
    assert proof.trials == 7
    assert "fix('ann') takes effect once" in str(proof)


def test_a_unique_constraint_and_one_transaction(app: Celery, bank: sa.Engine, effects: Effects) -> None:
    @app.task(name="charge")
    def charge(order_id: int) -> None:
        with bank.begin() as connection:
            first = connection.execute(
                sa.text("insert into seen values (:key) on conflict do nothing"), {"key": str(order_id)}
            )
            if first.rowcount:
                connection.execute(sa.insert(Charge).values(order_id=order_id, amount=5))

    effects.prove_once(charge, (1,))


def test_a_guarded_task(app: Celery, once: EffectOnce, effects: Effects) -> None:
    @app.task(name="charge", once=Transactional("charge:{order_id}"))
    def charge(order_id: int) -> str:
        once.session.add(Charge(order_id=order_id, amount=5))
        return "charged"

    proof = effects.prove_once(charge, (1,))
    assert any(point.startswith("INSERT INTO charges") for point in proof.points)


def test_a_leased_task_whose_receiver_honours_its_key(
    app: Celery, once: EffectOnce, effects: Effects, bank: sa.Engine
) -> None:
    """The receiver is a table that takes each key once."""

    @app.task(name="pay", once=Leased("pay:{order_id}"))
    def pay(order_id: int) -> None:
        with bank.begin() as connection:
            connection.execute(
                sa.text("insert into seen values (:key) on conflict do nothing"),
                {"key": str(once.effect.idempotency_key("pay"))},
            )

    effects.prove_once(pay, (1,))


def test_instants_and_random_ids_are_left_out(app: Celery, bank: sa.Engine, effects: Effects) -> None:
    @app.task(name="stamp")
    def stamp(order_id: int) -> None:
        with Session(bank) as session, session.begin():
            session.merge(Stamped(order_id=order_id, at=time.time()))

    proof = effects.prove_once(stamp, (1,))
    assert proof.left_out == ("stamped.at",)


@pytest.mark.effects(ignore=("stamped.at",))
def test_columns_that_need_not_be_the_same(app: Celery, bank: sa.Engine, effects: Effects) -> None:
    @app.task(name="count")
    def count(order_id: int) -> None:
        counted = "insert into stamped values (:id, 1) on conflict (order_id) do update set at = at + 1"
        with bank.begin() as connection:
            connection.execute(sa.text(counted), {"id": order_id})

    assert effects.prove_once(count, (1,)).left_out == ()


def test_the_database_is_left_as_it_was(app: Celery, bank: sa.Engine, effects: Effects) -> None:
    @app.task(name="fix")
    def fix(owner: str) -> None:
        with bank.begin() as connection:
            connection.execute(sa.update(Account).where(Account.owner == owner).values(balance=50))

    effects.prove_once(fix, ("ann",))
    with bank.connect() as connection:
        assert connection.execute(sa.select(Account.balance)).scalar_one() == 100


def test_an_error_of_the_task_itself_is_raised(app: Celery, effects: Effects) -> None:
    @app.task(name="broken")
    def broken() -> None:
        message = "no such customer"
        raise LookupError(message)

    with pytest.raises(LookupError, match="no such customer"):
        effects.prove_once(broken)
