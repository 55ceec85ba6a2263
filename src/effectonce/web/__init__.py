"""The dashboard: how the effects of an app stand, and what a person can do about them.

Pages are made on the server and work without scripts; htmx only keeps the overview fresh. Every page asks questions
whose answers do not grow with the ledger. Extra ``[web]``.

``dashboard(once, ...)`` is an ASGI application, to be mounted or served; ``celery -A proj once web`` serves it.
"""

from effectonce.web.app import dashboard

__all__ = ["dashboard"]
