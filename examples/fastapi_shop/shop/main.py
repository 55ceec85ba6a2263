"""The web app."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, FastAPI
from pydantic import BaseModel
from sqlalchemy.orm import Session

from shop.celery import charge, once
from shop.database import Order, SessionLocal

app = FastAPI()


class NewOrder(BaseModel):
    """What a customer sends."""

    customer: str
    total: int


def get_session() -> Iterator[Session]:
    """One session a request."""
    with SessionLocal() as session:
        yield session


@app.post("/orders", status_code=202)
def take_order(new: NewOrder, session: Annotated[Session, Depends(get_session)]) -> dict[str, int]:
    """Store an order, and have it charged: the message commits with the order."""
    order = Order(customer=new.customer, total=new.total)
    session.add(order)
    session.flush()
    with once.outbox(session):
        charge.delay(order.id)
    session.commit()
    return {"order": order.id}
