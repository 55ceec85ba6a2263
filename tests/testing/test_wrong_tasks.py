"""A catalogue of tasks that do not take effect once, each mistake of those who ask; the proof must find every one."""

import uuid
from typing import Any

import pytest
import sqlalchemy as sa
from celery import Celery
from sqlalchemy.orm import Session

from effectonce.testing import NotOnce
from effectonce.testing.effects import Effects
from tests.testing.bank import Account, Charge, Seen


def fails(effects: Effects, task: Any, *args: Any, **options: Any) -> NotOnce:
    with pytest.raises(NotOnce) as raised:
        effects.prove_once(task, args, **options)
    return raised.value


def test_adding_without_a_guard(app: Celery, bank: sa.Engine, effects: Effects) -> None:
    @app.task(name="charge")
    def charge(order_id: int) -> None:
        with Session(bank) as session, session.begin():
            session.add(Charge(order_id=order_id, amount=5))

    found = fails(effects, charge, 1)
    assert found.findings[0].fault == "delivered twice"
    assert found.findings[0].differences[0] == "table charges: 2 rows instead of 1"
    assert "+ (order_id=1, amount=5)" in str(found)
    assert "charge(1) does not take effect once" in str(found)


def test_adding_to_a_balance_instead_of_setting_it(app: Celery, bank: sa.Engine, effects: Effects) -> None:
    @app.task(name="deposit")
    def deposit(owner: str) -> None:
        with bank.begin() as connection:
            connection.execute(sa.update(Account).where(Account.owner == owner).values(balance=Account.balance + 10))

    found = fails(effects, deposit, "ann")
    assert "table accounts: 1 row otherwise" in str(found)
    assert "balance=120" in str(found)


def test_a_uuid_that_is_made_in_the_task(app: Celery, bank: sa.Engine, effects: Effects) -> None:
    @app.task(name="charge")
    def charge(order_id: int) -> None:
        key = str(uuid.uuid4())
        with Session(bank) as session, session.begin():
            if session.get(Seen, key) is None:
                session.add_all([Seen(key=key), Charge(order_id=order_id, amount=5)])

    assert "table charges: 2 rows instead of 1" in str(fails(effects, charge, 1))


def test_the_task_id_taken_for_the_intent(app: Celery, bank: sa.Engine, effects: Effects) -> None:
    @app.task(name="charge", bind=True)
    def charge(self: Any, order_id: int) -> None:
        with Session(bank) as session, session.begin():
            if session.get(Seen, self.request.id) is None:
                session.add_all([Seen(key=self.request.id), Charge(order_id=order_id, amount=5)])

    faults = [finding.fault for finding in fails(effects, charge, 1).findings]
    assert "sent twice by its caller" in faults
    assert "delivered twice" not in faults


def test_check_then_insert_in_two_transactions(app: Celery, bank: sa.Engine, effects: Effects) -> None:
    """Only two deliveries at once show it."""

    @app.task(name="charge")
    def charge(order_id: int) -> None:
        with Session(bank) as session:
            there = session.scalar(sa.select(Charge).where(Charge.order_id == order_id))
        if there is None:
            with Session(bank) as session, session.begin():
                session.add(Charge(order_id=order_id, amount=5))

    faults = [finding.fault for finding in fails(effects, charge, 1).findings]
    assert faults
    assert all(fault.startswith("delivered again while it was about to do") for fault in faults)


def test_the_mark_before_the_work(app: Celery, bank: sa.Engine, effects: Effects) -> None:
    """A death in between loses the work."""

    @app.task(name="charge")
    def charge(order_id: int) -> None:
        with Session(bank) as session, session.begin():
            if session.get(Seen, str(order_id)) is not None:
                return
            session.add(Seen(key=str(order_id)))
        with Session(bank) as session, session.begin():
            session.add(Charge(order_id=order_id, amount=5))

    found = fails(effects, charge, 1)
    assert "table charges: 0 rows instead of 1" in str(found)
    assert all(finding.fault.startswith(("killed", "delivered again while")) for finding in found.findings)


def test_the_work_before_the_mark(app: Celery, bank: sa.Engine, effects: Effects) -> None:
    @app.task(name="charge")
    def charge(order_id: int) -> None:
        with Session(bank) as session:
            if session.get(Seen, str(order_id)) is not None:
                return
        with Session(bank) as session, session.begin():
            session.add(Charge(order_id=order_id, amount=5))
        with Session(bank) as session, session.begin():
            session.add(Seen(key=str(order_id)))

    found = fails(effects, charge, 1)
    assert any(finding.fault.startswith("killed after COMMIT") for finding in found.findings)


def test_a_message_that_is_sent_before_the_commit(app: Celery, bank: sa.Engine, effects: Effects) -> None:
    @app.task(name="receipt")
    def receipt(order_id: int) -> None: ...

    @app.task(name="charge")
    def charge(order_id: int) -> None:
        with Session(bank) as session, session.begin():
            if session.get(Seen, str(order_id)) is None:
                session.add(Seen(key=str(order_id)))
                receipt.delay(order_id)

    found = fails(effects, charge, 1)
    assert "publish receipt(1,) {}: made 2 times instead of 1" in str(found)


def test_a_swallowed_error(app: Celery, bank: sa.Engine, effects: Effects) -> None:
    """The body goes on when the process is gone: nothing that it does then counts."""

    @app.task(name="charge")
    def charge(order_id: int) -> None:
        try:
            with bank.begin() as connection:
                connection.execute(sa.insert(Seen).values(key=str(order_id)))
        except sa.exc.IntegrityError:
            return
        with bank.begin() as connection:
            connection.execute(sa.insert(Charge).values(order_id=order_id, amount=5))

    assert "table charges: 0 rows instead of 1" in str(fails(effects, charge, 1))
