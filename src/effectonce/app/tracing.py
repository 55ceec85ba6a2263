"""The tracer of a guarded task: what leaves it reaches the worker in every pool.

A `Reject` that is raised after the body (a continuation that nobody takes) goes through Celery's tracer as it is. The
pool of processes carries it to the worker's main process; those of threads lose it, and the message is never
acknowledged nor given back; ``solo`` stops consuming over it (celery 5.7.0, `celery.concurrency.base.apply_target`). So
the tracer that Celery puts on a guarded task is wrapped: it answers as for a `Reject` out of the body.
"""

from collections.abc import Callable
from typing import Any, Final

from billiard.einfo import ExceptionInfo
from celery.app.trace import TraceInfo, trace_ok_t
from celery.exceptions import Reject
from celery.states import REJECTED

_TRACER: Final = "_effectonce_tracer"


class Tracer:
    """A descriptor in the place of ``Task.__trace__``, which each process sets once for each task."""

    def __get__(self, task: Any, _owner: Any = None) -> Any:
        return None if task is None else vars(task).get(_TRACER)

    def __set__(self, task: Any, tracer: Callable[..., Any] | None) -> None:
        vars(task)[_TRACER] = None if tracer is None else _telling(tracer)


def _telling(tracer: Callable[..., Any]) -> Callable[..., Any]:
    def trace(uuid: str, args: Any, kwargs: Any, request: Any = None) -> Any:
        try:
            return tracer(uuid, args, kwargs, request)
        except Reject as reject:
            return trace_ok_t(ExceptionInfo(internal=True), TraceInfo(REJECTED, reject), 0.0, None)

    return trace
