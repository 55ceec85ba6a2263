"""The ASGI application: routes, and what every request passes through."""

from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from effectonce.web import actions, pages
from effectonce.web.gate import Gate, Keys, Safe
from effectonce.web.shown import Desk

_STATIC: Final = Path(__file__).with_name("static")


def dashboard(
    once: Any, *, password: str = "", token: str = "", read_only: bool = False, trusted: bool = False
) -> Starlette:
    """An ASGI application over *once*.

    *password* opens it to people, *token* (``Authorization: Bearer``) to programs. Without either it answers only on
    names of this machine (``localhost``, ``127.0.0.1``), unless *trusted*: somebody in front of it has looked who
    comes. *read_only*: nothing can be changed. Nothing is connected before the first request.
    """
    keys = Keys(password=password, token=token, trusted=trusted)
    app = Starlette(
        routes=[
            Route("/", pages.overview_page, name="overview"),
            Route("/entries", pages.entries_page, name="entries"),
            Route("/entries/{digest}", pages.entry_page, name="entry"),
            Route("/entries/{digest}/{action}", actions.ask, name="ask", methods=["GET"]),
            Route("/entries/{digest}/{action}", actions.act, name="act", methods=["POST"]),
            Route("/outbox", pages.outbox_page, name="outbox"),
            Route("/ticks", pages.ticks_page, name="ticks"),
            Route("/doctor", pages.doctor_page, name="doctor"),
            Route("/metrics", pages.metrics_page, name="metrics"),
            Route("/login", actions.login_page, name="login", methods=["GET"]),
            Route("/login", actions.login, name="enter", methods=["POST"]),
            Route("/logout", actions.logout, name="logout", methods=["POST"]),
            Mount("/static", StaticFiles(directory=_STATIC), name="static"),
        ],
        middleware=[Middleware(Safe), Middleware(Gate, keys=keys)],
        exception_handlers={404: pages.not_found},
    )
    app.state.desk = Desk(once=once, keys=keys, read_only=read_only)
    return app
