"""What the tests of the SQL ledger are played with."""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from effectonce.domain.claims import Claim, Granted, Outcome, Refused, State
from effectonce.ports import Work
from effectonce.stores.sql.ledger import SqlLedger

CHARGES = "charges"
NONE = Outcome(state=State.COMPLETED, keep=3600.0)
DONE = Outcome(state=State.COMPLETED, result=b"done", keep=3600.0)


class Base(DeclarativeBase):
    """Of the objects that bodies write."""


class Charged(Base):
    """A charge as an object."""

    __tablename__ = "charged"
    effect: Mapped[str] = mapped_column(sa.String(40), primary_key=True)


class Audited(Base):
    """An object that may lie in another database."""

    __tablename__ = "audited"
    effect: Mapped[str] = mapped_column(sa.String(40), primary_key=True)


class Routing(Session):
    """Sessions that choose their engine by themselves, as those with replicas do."""

    def get_bind(self, *_: Any, **__: Any) -> sa.Engine:
        engine = self.bind
        assert isinstance(engine, sa.Engine)
        return engine


def charge(connection: sa.Connection | Any, claim: Claim) -> None:
    """Write what must be written once."""
    connection.execute(sa.text(f"insert into {CHARGES} values (:effect)"), {"effect": claim.digest.hex()})


def charges(engine: sa.Engine, claim: Claim) -> int:
    """How often that was done."""
    with engine.connect() as connection:
        found = sa.text(f"select count(*) from {CHARGES} where effect = :effect")
        return int(connection.execute(found, {"effect": claim.digest.hex()}).scalar_one())


def open_work(ledger: SqlLedger, claim: Claim, *, granted: Granted | None = None, escape: bool = False) -> Any:
    """The transaction of a body."""
    return ledger.work(claim, granted=granted, allow_escape=escape, keep=claim.keep)


def carried_out(
    ledger: SqlLedger,
    claim: Claim,
    body: Callable[[Work], object],
    *,
    outcome: Outcome = NONE,
    granted: Granted | None = None,
    escape: bool = False,
) -> Refused | bool:
    """Carry an effect out as a body would; the refusal, or whether it was not fenced."""
    with open_work(ledger, claim, granted=granted, escape=escape) as work:
        answer = work.enter()
        if isinstance(answer, Refused):
            return answer
        body(work)
        if not work.finish(outcome):
            return False
        work.commit()
        return True
