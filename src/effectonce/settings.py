"""The settings, their defaults, and what makes one bad.

They are read late, through the app's own look-up, and all faults are reported at once.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from effectonce.errors import SettingsInvalid

PREFIX: Final = "effectonce_"

MISSED: Final = ("latest", "all", "skip")
"""What may become of missed ticks; `effectonce.domain.ticks.Missed` says what each means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, read and found good. Seconds are floats; None is for ever where it may be given."""

    ledger: Any = None
    leases: Any = None
    namespace: str | Callable[..., str] = ""
    mode: str = "enforce"
    schema: str | None = None
    create_schema: bool | None = None
    keep_seconds: float | None = 7 * 24 * 3600.0
    lease_seconds: float = 60.0
    max_takeovers: int = 5
    result_max_bytes: int = 65536
    renew_visibility: bool = True
    renew_at_most_seconds: float | None = 24 * 3600.0
    far_eta: str = "warn"
    beat_scheduler: str | type[Any] = "celery.beat:PersistentScheduler"
    beat_lease_seconds: float = 10.0
    beat_missed: str = "latest"
    relay: bool = True
    direct_url: str | None = None
    history_rows: int = 100_000
    log_ordinary: bool = False
    metrics: bool = False
    metrics_port: int | None = None
    traces: bool = False
    send_in_transaction: str | None = None


_NAMES: Final = tuple(Settings.__dataclass_fields__)


def unknown_settings(names: Iterable[str]) -> list[str]:
    """Say of each name (without prefix) that is no setting which one may be meant."""
    return [_unknown(name) for name in sorted(names) if name not in _NAMES]


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, _NAMES, n=1, cutoff=0.5)
    meant = f"did you mean {PREFIX}{near[0]}?" if near else f"there are: {', '.join(_NAMES)}"
    return f"{PREFIX}{name} is no setting; {meant}"


NO_LEDGER: Final = (
    f"{PREFIX}ledger is missing; write EffectOnce(app, ledger='postgresql+psycopg://user@host/database'), "
    "or sqlite:///file, or redis://host"
)


def read_settings(given: Mapping[str, Any], names: Iterable[str], *, needs_ledger: bool = True) -> Settings:
    """Make settings of what was *given*, *names* being all that the configuration has with our prefix.

    *needs_ledger*: whether there is anything to record. Raises SettingsInvalid with every fault in one report.
    """
    faults = unknown_settings(names)
    values = {name: given[name] for name in _NAMES if name in given}
    for name, value in values.items():
        fault = _CHECKS[name](value)
        if fault:
            faults.append(f"{PREFIX}{name} {fault}")
    if needs_ledger and "ledger" not in values:
        faults.append(NO_LEDGER)
    if faults:
        raise SettingsInvalid(faults=faults)
    return Settings(**values)


def _ledger(value: Any) -> str | None:
    if value is None or value == "":
        return "is empty; give a URL, an Engine, a sessionmaker or a scoped_session"
    if isinstance(value, Mapping):
        return _ledgers(value)
    return None


def _ledgers(value: Mapping[Any, Any]) -> str | None:
    bad = [name for name, source in value.items() if not isinstance(name, str) or source is None or source == ""]
    if bad:
        return f"names no ledger for {', '.join(map(repr, bad))}; names are text, and each has a URL or an Engine"
    if "default" not in value:
        return "as a mapping needs the name 'default', for what no other name is meant for"
    return None


def _leases(value: Any) -> str | None:
    return "is empty; give a URL, an Engine or a sessionmaker, or leave it out" if value == "" else None


def _namespace(value: Any) -> str | None:
    return None if isinstance(value, str) or callable(value) else f"must be text or a callable, not {_kind(value)}"


def _mode(value: Any) -> str | None:
    fine = value in {"enforce", "observe", "off"}
    return None if fine else f"must be 'enforce', 'observe' or 'off', not {value!r}"


def _far_eta(value: Any) -> str | None:
    fine = value in {"warn", "park", "raise"}
    return None if fine else f"must be 'warn', 'park' or 'raise', not {value!r}"


def _send_in_transaction(value: Any) -> str | None:
    fine = value is None or value in {"outbox", "on_commit", "now", "raise"}
    return None if fine else f"must be 'outbox', 'on_commit', 'now' or 'raise', not {value!r}"


def _schema(value: Any) -> str | None:
    fine = value is None or (isinstance(value, str) and value.isidentifier())
    return None if fine else f"must be the name of a database schema, not {value!r}"


def _flag(value: Any) -> str | None:
    return None if value is None or isinstance(value, bool) else f"must be True or False, not {value!r}"


def _switch(value: Any) -> str | None:
    return None if isinstance(value, bool) else f"must be True or False, not {value!r}"


def _direct_url(value: Any) -> str | None:
    fine = value is None or (isinstance(value, str) and value.startswith(("postgresql", "postgres:")))
    return None if fine else "must be a URL of PostgreSQL"


def _seconds(value: Any) -> str | None:
    return None if _is_number(value) and value > 0 else f"must be seconds above 0, not {value!r}"


def _keep(value: Any) -> str | None:
    return None if value is None else _seconds(value)


def _count(value: Any) -> str | None:
    fine = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    return None if fine else f"must be a whole number of at least 1, not {value!r}"


def _rows(value: Any) -> str | None:
    fine = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return None if fine else f"must be a whole number of rows, or 0 for none, not {value!r}"


def _port(value: Any) -> str | None:
    fine = value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**16)
    return None if fine else f"must be the number of a port, not {value!r}"


def _scheduler(value: Any) -> str | None:
    fine = isinstance(value, type) or (isinstance(value, str) and value)
    return None if fine else f"must name a scheduler class, as module:Class, not {value!r}"


def _missed(value: Any) -> str | None:
    return None if value in MISSED else f"must be one of {', '.join(map(repr, MISSED))}, not {value!r}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    return type(value).__name__


_CHECKS: Final[Mapping[str, Callable[[Any], str | None]]] = {
    "ledger": _ledger,
    "leases": _leases,
    "namespace": _namespace,
    "mode": _mode,
    "schema": _schema,
    "create_schema": _flag,
    "keep_seconds": _keep,
    "lease_seconds": _seconds,
    "max_takeovers": _count,
    "result_max_bytes": _count,
    "renew_visibility": _switch,
    "renew_at_most_seconds": _keep,
    "far_eta": _far_eta,
    "beat_scheduler": _scheduler,
    "beat_lease_seconds": _seconds,
    "beat_missed": _missed,
    "relay": _switch,
    "direct_url": _direct_url,
    "history_rows": _rows,
    "log_ordinary": _switch,
    "metrics": _switch,
    "metrics_port": _port,
    "traces": _switch,
    "send_in_transaction": _send_in_transaction,
}
