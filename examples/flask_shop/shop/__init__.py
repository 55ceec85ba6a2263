"""The app factory."""

import os
from typing import Any

from celery import Celery, Task
from flask import Flask, request

from effectonce.http.wsgi import IdempotencyMiddleware
from shop.extensions import db, once


def create_app(**settings: Any) -> Flask:
    """Make the app; *settings* go first."""
    app = Flask(__name__)
    broker = os.environ.get("SHOP_BROKER", "redis://localhost")
    app.config.from_mapping(
        SQLALCHEMY_DATABASE_URI=f"sqlite:///{os.environ.get('SHOP_DATABASE', 'shop.sqlite')}",
        CELERY={"broker_url": broker, "result_backend": broker},
    )
    app.config.from_mapping(settings)
    db.init_app(app)
    celery_init_app(app)
    once.init_app(app)
    app.wsgi_app = IdempotencyMiddleware(app.wsgi_app, once=once)
    _add_routes(app)
    app.cli.command("init-db")(lambda: create_tables(app))
    return app


def celery_init_app(app: Flask) -> Celery:
    """Set Celery up as Flask's documentation does."""

    class FlaskTask(Task):
        def __call__(self, *args: object, **kwargs: object) -> object:
            with app.app_context():
                return self.run(*args, **kwargs)

    celery_app = Celery(app.name, task_cls=FlaskTask)
    celery_app.config_from_object(app.config["CELERY"])
    celery_app.set_default()
    app.extensions["celery"] = celery_app
    return celery_app


def create_tables(app: Flask) -> None:
    """Create the shop's tables and the ledger's."""
    with app.app_context():
        db.create_all()
        once.ledger.create_schema()


def _add_routes(app: Flask) -> None:
    from shop.models import Order
    from shop.tasks import charge

    @app.post("/orders")
    def take_order() -> tuple[dict[str, int], int]:
        """Store an order, and have it charged: order, message and the record of the answer are one commit."""
        once.http.session()  # `db.session` is the request's own transaction from here on
        order = Order(customer=request.form["customer"], total=int(request.form["total"]))
        db.session.add(order)
        db.session.flush()
        charge.delay(order.id)
        return {"order": order.id}, 202
