"""SQLAlchemy's asynchronous kinds, without loading them: they need greenlet, which only their users have installed."""

import sys
from typing import Any


def is_one_of(thing: Any, *kinds: str) -> bool:
    """Whether *thing* is of a kind of ``sqlalchemy.ext.asyncio``; whoever has made one has loaded it."""
    module = sys.modules.get("sqlalchemy.ext.asyncio")
    return module is not None and isinstance(thing, tuple(getattr(module, kind) for kind in kinds))
