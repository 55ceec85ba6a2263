"""OpenTelemetry: a span for each attempt, and counters; needs the extra ``[otel]``.

Celery's own instrumentation opens a span for each run of a task. An attempt is a child of it, and what happens to the
effect is an event of the attempt's span. Without any instrumentation the attempt is a root of its own. Keys are
attributes of spans and never of counters.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from opentelemetry import metrics, trace
from opentelemetry.trace import Status, StatusCode

from effectonce.events import Event, Name

_SCOPE: Final = "effectonce"
_FAILURES: Final = frozenset({Name.EFFECT_UNKNOWN, Name.EFFECT_POISONED, Name.FENCE_REFUSED, Name.EFFECT_REUSED})


@contextmanager
def attempt_span(**named: Any) -> Iterator[None]:
    """A span for one attempt; *named* are its attributes, without those that are empty."""
    attributes = {f"effectonce.{name}": value for name, value in named.items() if value}
    tracer = trace.get_tracer(_SCOPE)
    with tracer.start_as_current_span(
        "effectonce.attempt", attributes=attributes, record_exception=False, set_status_on_exception=False
    ):
        yield


def note(event: Event) -> None:
    """Note an event on the span of its attempt, and count it."""
    span = trace.get_current_span()
    if span.is_recording():
        facts = {"fence": event.fence, **event.facts}
        span.add_event(event.name.value, {name: _plain(value) for name, value in facts.items() if value})
        if event.fence:
            span.set_attribute("effectonce.fence", event.fence)
        cause = event.facts.get("cause")
        if cause:
            span.set_attribute("effectonce.cause", str(cause))
        if event.name in _FAILURES:
            span.set_status(Status(StatusCode.ERROR, event.name.value))
    _count(event)


def _count(event: Event) -> None:
    counter = metrics.get_meter(_SCOPE).create_counter(
        f"effectonce.{event.name.value}", description=f"How often {event.name.value} happened."
    )
    labels = {"task": event.task, "cause": str(event.facts.get("cause", ""))}
    counter.add(1, {name: value for name, value in labels.items() if value})


def _plain(value: Any) -> str | int | float | bool:
    return value if isinstance(value, (str, int, float, bool)) else str(value)
