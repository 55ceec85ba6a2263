"""Orders and payments. No constraint keeps an order from being paid twice: the task does."""

import os

from sqlalchemy import ForeignKey, create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship, sessionmaker

engine = create_engine(f"sqlite:///{os.environ.get('SHOP_DATABASE', 'shop.sqlite')}")
SessionLocal = sessionmaker(bind=engine)


class Base(DeclarativeBase):
    """Of the models."""


class Order(Base):
    """What somebody wants."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str]
    total: Mapped[int]
    is_paid: Mapped[bool] = mapped_column(default=False)
    payments: Mapped[list["Payment"]] = relationship()


class Payment(Base):
    """What was taken for it."""

    __tablename__ = "payments"
    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[int] = mapped_column(ForeignKey("orders.id"))
    amount: Mapped[int]


def create_tables() -> None:
    """Create the shop's tables and the ledger's."""
    from shop.celery import once

    Base.metadata.create_all(engine)
    once.ledger.create_schema()


if __name__ == "__main__":
    create_tables()
