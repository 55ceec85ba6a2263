"""Prometheus figures over HTTP, from a worker's main process or from the dashboard.

A worker of the prefork pool has counters in each child. They live in files of one folder
(``PROMETHEUS_MULTIPROC_DIR``), which the main process reads when it is asked; the folder is made before the pool forks,
and before `prometheus_client` is first imported, since that is when it decides. Beside the counters stand figures that
the ledger is asked for, at most every few seconds.
"""

import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from effectonce.errors import EffectOnceError

if TYPE_CHECKING:
    from effectonce.app.extension import EffectOnce

logger = logging.getLogger("effectonce")

_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
_FRESH: Final = 5.0
"""Seconds for which the ledger's answers are given again."""


def prepare(once: "EffectOnce") -> None:
    """Before a pool forks: have its children's counters be readable from here."""
    if once.settings.metrics_port is None or os.environ.get(_FOLDER):
        return
    if "prometheus_client" in sys.modules:
        logger.warning(
            "prometheus_client was imported before the worker started: the counters of its children cannot be read "
            "here. Set %s to an empty folder before Celery starts.",
            _FOLDER,
        )
        return
    os.environ[_FOLDER] = tempfile.mkdtemp(prefix="effectonce-metrics-")


def registry_of(once: "EffectOnce") -> Any:
    """What Prometheus is shown: counters of this process and its children, and figures of the ledger."""
    import prometheus_client  # noqa: PLC0415 - an extra, and `prepare` comes first
    from prometheus_client import multiprocess  # noqa: PLC0415

    registry = prometheus_client.CollectorRegistry()
    if os.environ.get(_FOLDER):
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    else:
        registry.register(_Ours(prometheus_client.REGISTRY))
    registry.register(LedgerFigures(once))
    return registry


def serve(once: "EffectOnce", *, port: int) -> tuple[Any, Any]:
    """Answer on *port* of every interface, from a thread; answers the server and its thread."""
    import prometheus_client  # noqa: PLC0415 - an extra, and `prepare` comes first

    return prometheus_client.start_http_server(port, registry=registry_of(once))


def text_of(once: "EffectOnce") -> bytes:
    """The figures as Prometheus reads them."""
    import prometheus_client  # noqa: PLC0415 - an extra

    found: bytes = prometheus_client.generate_latest(registry_of(once))
    return found


class _Ours:
    """Our own counters of a registry that has others too."""

    def __init__(self, registry: Any) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Any]:
        """Those with our name."""
        from effectonce.observers import metrics  # noqa: PLC0415 - an extra

        _ = metrics
        return (each for each in self._registry.collect() if each.name.startswith("effectonce_"))


class LedgerFigures:
    """A collector that asks the ledger; one that does not answer is told by ``effectonce_ledger_up 0``."""

    def __init__(self, once: "EffectOnce") -> None:
        self._once = once
        self._asked = -_FRESH
        self._answer: dict[str, dict[tuple[str, ...], float]] = {}

    def describe(self) -> list[Any]:
        """Nothing: so that the ledger is not asked before anybody looks."""
        return []

    def collect(self) -> Iterator[Any]:
        """Gauges."""
        from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - an extra

        now = time.monotonic()
        if now - self._asked >= _FRESH:
            self._asked, self._answer = now, figures(self._once)
        for name, (words, labels) in _GAUGES.items():
            family = GaugeMetricFamily(name, words, labels=labels)
            for values, number in self._answer.get(name, {}).items():
                family.add_metric(list(values), number)
            yield family


_GAUGES: Final[dict[str, tuple[str, list[str]]]] = {
    "effectonce_ledger_up": ("Whether the ledger answers.", []),
    "effectonce_entries": ("Entries that stand open: claimed, unknown, poisoned.", ["state"]),
    "effectonce_outbox_waiting": ("Messages in the outbox.", ["stage"]),
    "effectonce_outbox_oldest_seconds": ("Age of the oldest message that is due.", []),
    "effectonce_beat_leads": ("Whether somebody leads this schedule.", ["term"]),
}


def figures(once: "EffectOnce") -> dict[str, dict[tuple[str, ...], float]]:
    """What the ledger says now."""
    from effectonce.app.overview import overview  # noqa: PLC0415 - only where it is asked

    try:
        seen = overview(once, minutes=1)
    except EffectOnceError:
        return {"effectonce_ledger_up": {(): 0.0}}
    return {
        "effectonce_ledger_up": {(): 1.0},
        "effectonce_entries": {
            ("claimed",): seen.claimed,
            ("unknown",): seen.unknown,
            ("poisoned",): seen.poisoned,
        },
        "effectonce_outbox_waiting": {
            ("ready",): seen.outbox.ready,
            ("parked",): seen.outbox.parked,
            ("stuck",): seen.outbox.stuck,
        },
        "effectonce_outbox_oldest_seconds": {(): seen.outbox.oldest},
        "effectonce_beat_leads": {(seat.name,): float(seat.is_held) for seat in seen.seats},
    }


def mark_dead(pid: int) -> None:
    """A child of the pool has ended: its gauges, if there are any, are over."""
    if os.environ.get(_FOLDER) and "prometheus_client" in sys.modules:
        with suppress(Exception):
            sys.modules["prometheus_client"].multiprocess.mark_process_dead(pid)
