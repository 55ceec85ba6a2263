"""``delay_on_commit`` and ``apply_async_on_commit`` of Celery's Django task, where there is an outbox to go into.

By themselves they send in a hook after the commit, and a process that dies before the hook has lost the message. Where
the transaction's messages are stored anyway, these are too.
"""

from functools import wraps
from typing import Any, Final

from effectonce.app.sending import is_collecting

_JOINED: Final = "_effectonce_on_commit"
_SENDERS: Final = {"delay_on_commit": "delay", "apply_async_on_commit": "apply_async"}


def join_on_commit(cls: Any) -> None:
    """Let a task's class store what it would send after the commit; nothing for a class that is not Django's."""
    if _JOINED in vars(cls) or not all(hasattr(cls, name) for name in _SENDERS):
        return
    setattr(cls, _JOINED, True)
    for name, sender in _SENDERS.items():
        setattr(cls, name, _joined(getattr(cls, name), sender))


def _joined(plain: Any, sender: str) -> Any:
    @wraps(plain)
    def on_commit(self: Any, *args: Any, **kwargs: Any) -> None:
        once = getattr(self.app, "effectonce", None)
        if once is not None and is_collecting(once, once.guard_of(self)):
            getattr(self, sender)(*args, **kwargs)
        else:
            plain(self, *args, **kwargs)

    return on_commit
