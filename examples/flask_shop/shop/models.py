"""Orders and payments. No constraint keeps an order from being paid twice: the task does."""

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column, relationship

from shop.extensions import db


class Order(db.Model):
    """What somebody wants."""

    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str]
    total: Mapped[int]
    is_paid: Mapped[bool] = mapped_column(default=False)
    payments: Mapped[list["Payment"]] = relationship()


class Payment(db.Model):
    """What was taken for it."""

    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[int] = mapped_column(ForeignKey("order.id"))
    amount: Mapped[int]
