"""What the tasks of the catalogue work on: a bank in SQLAlchemy."""

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """Of the tables."""


class Account(Base):
    """Somebody's money."""

    __tablename__ = "accounts"
    id: Mapped[int] = mapped_column(primary_key=True)
    owner: Mapped[str]
    balance: Mapped[int]


class Charge(Base):
    """A charge; nothing keeps a second one out."""

    __tablename__ = "charges"
    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[int]
    amount: Mapped[int]


class Seen(Base):
    """Keys that were seen before."""

    __tablename__ = "seen"
    key: Mapped[str] = mapped_column(primary_key=True)


class Stamped(Base):
    """Rows with an instant."""

    __tablename__ = "stamped"
    order_id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[float]


def open_bank(url: str) -> sa.Engine:
    """A bank with one account."""
    engine = sa.create_engine(url)
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(Account).values(owner="ann", balance=100))
    return engine
