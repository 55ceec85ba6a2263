"""The system that the doctor looks at: an app, its broker, its ledger and its workers, each asked once."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from effectonce.app.bootsteps import guarded_tasks
from effectonce.app.brokers import visibility_timeout
from effectonce.app.remote import COMMAND
from effectonce.app.requests import transport_of
from effectonce.domain.policies import UNSET, Leased, Transactional

if TYPE_CHECKING:
    from effectonce.app.extension import EffectOnce

WAIT: Final = 1.0
"""Seconds for which workers are listened to."""


class Patient:
    """Answers are kept, so that all checks see one instant."""

    def __init__(self, once: "EffectOnce", *, wait: float = WAIT) -> None:
        self.once = once
        self.app = once.app
        self.settings = once.settings
        self.waited = wait
        self.asked_workers_at = time.time()

    @cached_property
    def transport(self) -> str:
        """The driver of the broker, such as ``redis`` or ``amqp``."""
        return transport_of(self.app)

    @cached_property
    def visibility(self) -> float | None:
        """Seconds after which the broker gives a held message to somebody else."""
        return visibility_timeout(self.app)

    @cached_property
    def tasks(self) -> Sequence[Any]:
        """Guarded tasks."""
        return guarded_tasks(self.app)

    @cached_property
    def durable(self) -> Sequence[Any]:
        """Guarded tasks whose effect must not be lost."""
        return [task for task in self.tasks if isinstance(task.once, (Leased, Transactional))]

    def limit_of(self, task: Any) -> float | None:
        """The hard time limit of a task in seconds."""
        limit = task.time_limit or self.app.conf.task_time_limit
        return float(limit) if limit else None

    def keep_of(self, task: Any) -> float | None:
        """How long a finished entry of a task is kept."""
        said = task.once.keep_seconds
        return self.settings.keep_seconds if said is UNSET else said

    @cached_property
    def queues(self) -> Mapping[str, Any]:
        """The queues that the app consumes, by name."""
        return dict(self.app.amqp.queues)

    @cached_property
    def workers(self) -> Mapping[str, Mapping[str, Any]]:
        """What each worker that answers says of itself; empty where none does."""
        self.asked_workers_at = time.time() + self.waited / 2
        replies = self.app.control.inspect(timeout=self.waited)._request(COMMAND)  # noqa: SLF001 - Celery's own way
        return {name: reply for name, reply in (replies or {}).items() if isinstance(reply, dict)}

    @cached_property
    def scheduled(self) -> Sequence[Mapping[str, Any]]:
        """Messages that workers hold until their eta; *in* seconds from now."""
        return [each for reply in self.workers.values() for each in reply.get("waiting", ())]

    @contextmanager
    def channel(self) -> Iterator[Any]:
        """A channel of the broker."""
        with self.app.connection_for_read() as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=2)
            channel = connection.default_channel
            yield channel

    @cached_property
    def skew(self) -> float | None:
        """Seconds by which this machine's clock is ahead of the ledger's; None where the ledger does not tell."""
        survey = getattr(self.once.ledger, "survey", None)
        if survey is None:
            return None
        before = time.time()
        theirs: float = survey.now()
        return (before + time.time()) / 2 - theirs
