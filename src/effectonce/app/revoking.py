"""Revoking a task whose message is parked: it is in no worker's hands yet, so it is taken out of the outbox.

Workers are told as ever too. They remember a revoked id for some hours only, and not over a restart; a parked message
may be due in weeks.
"""

import logging
from collections.abc import Sequence
from typing import Any

from kombu.utils.imports import symbol_by_name

from effectonce.errors import EffectOnceError
from effectonce.ports import is_transactional

logger = logging.getLogger("effectonce")


def cancel_parked_when_revoked(app: Any) -> None:
    """Let ``app.control.revoke``, and so ``AsyncResult.revoke``, cancel what is parked; reads no configuration."""
    if not isinstance(app.control_cls, Controls):
        app.control_cls = Controls(app.control_cls)


class Controls:
    """Makes the app's control: its own class, which then also looks into the outbox. It pickles with the app."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Make one."""
        plain = symbol_by_name(self._plain)

        class Control(plain):  # type: ignore[valid-type,misc]
            """The app's own, which also looks into the outbox."""

            def revoke(self, task_id: Any, *args: Any, **kwargs: Any) -> Any:
                """Cancel a parked message, and tell the workers."""
                _cancel(self.app.effectonce, [task_id] if isinstance(task_id, str) else list(task_id))
                return super().revoke(task_id, *args, **kwargs)

        return Control(*args, **kwargs)


def _cancel(once: Any, task_ids: Sequence[str]) -> None:
    """A ledger that cannot be asked is no reason not to tell the workers; it is said."""
    try:
        for ledger in once.ledgers:
            if is_transactional(ledger):
                ledger.outbox.cancel(task_ids)
    except EffectOnceError as error:
        logger.warning("whether a revoked task is parked could not be asked: %s", error.code)
