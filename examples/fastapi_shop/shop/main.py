"""The web app."""

from typing import Annotated

from fastapi import Depends, FastAPI
from pydantic import BaseModel
from sqlalchemy.orm import Session

from effectonce.http.asgi import IdempotencyMiddleware
from shop.celery import charge, once
from shop.database import Order

app = FastAPI()
app.add_middleware(IdempotencyMiddleware, once=once)


class NewOrder(BaseModel):
    """What a customer sends."""

    customer: str
    total: int


@app.post("/orders", status_code=202)
def take_order(new: NewOrder, session: Annotated[Session, Depends(once.http.session)]) -> dict[str, int]:
    """Store an order, and have it charged: order, message and the record of the answer are one commit."""
    order = Order(customer=new.customer, total=new.total)
    session.add(order)
    session.flush()
    charge.delay(order.id)
    return {"order": order.id}
