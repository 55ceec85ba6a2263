"""effectonce: a Celery task takes effect once.

Celery delivers a message at least once. This library makes its *effect* happen once: a key from the task's meaning,
and a ledger entry that commits with the work, or a lease with a fence where the effect is outside. The public names
are loaded when they are first used, so importing the package costs little.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from effectonce.app.current import connection as connection
    from effectonce.app.current import effect as effect
    from effectonce.app.current import outbox as outbox
    from effectonce.app.current import session as session
    from effectonce.app.extension import EffectOnce as EffectOnce
    from effectonce.domain.policies import MESSAGE as MESSAGE
    from effectonce.domain.policies import Exclusive as Exclusive
    from effectonce.domain.policies import Leased as Leased
    from effectonce.domain.policies import Natural as Natural
    from effectonce.domain.policies import Transactional as Transactional
    from effectonce.domain.policies import Unique as Unique
    from effectonce.domain.steps import Done as Done
    from effectonce.domain.steps import Failed as Failed
    from effectonce.domain.steps import NotDone as NotDone
    from effectonce.domain.steps import Unknown as Unknown
    from effectonce.errors import CommitUncertain as CommitUncertain
    from effectonce.errors import EffectBusy as EffectBusy
    from effectonce.errors import EffectDuplicate as EffectDuplicate
    from effectonce.errors import EffectHeld as EffectHeld
    from effectonce.errors import EffectKeyReused as EffectKeyReused
    from effectonce.errors import EffectNotFound as EffectNotFound
    from effectonce.errors import EffectOnceError as EffectOnceError
    from effectonce.errors import EntryRefused as EntryRefused
    from effectonce.errors import EtaTooFar as EtaTooFar
    from effectonce.errors import FenceRefused as FenceRefused
    from effectonce.errors import KeyInvalid as KeyInvalid
    from effectonce.errors import KeyMissing as KeyMissing
    from effectonce.errors import LedgerUnavailable as LedgerUnavailable
    from effectonce.errors import LedgerUnsuitable as LedgerUnsuitable
    from effectonce.errors import NotInstalled as NotInstalled
    from effectonce.errors import OutboxUnsuitable as OutboxUnsuitable
    from effectonce.errors import OutsideEffect as OutsideEffect
    from effectonce.errors import PolicyInvalid as PolicyInvalid
    from effectonce.errors import ResultNotEncodable as ResultNotEncodable
    from effectonce.errors import ResultNotKept as ResultNotKept
    from effectonce.errors import SchemaMissing as SchemaMissing
    from effectonce.errors import SentInTransaction as SentInTransaction
    from effectonce.errors import SettingsInvalid as SettingsInvalid
    from effectonce.errors import SettledAsFailed as SettledAsFailed
    from effectonce.errors import StepInvalid as StepInvalid
    from effectonce.errors import TransactionEscaped as TransactionEscaped

__version__ = "0.1.0"

_ERRORS = (
    "CommitUncertain",
    "EffectBusy",
    "EffectDuplicate",
    "EffectHeld",
    "EffectKeyReused",
    "EffectNotFound",
    "EffectOnceError",
    "EntryRefused",
    "EtaTooFar",
    "FenceRefused",
    "KeyInvalid",
    "KeyMissing",
    "LedgerUnavailable",
    "LedgerUnsuitable",
    "NotInstalled",
    "OutboxUnsuitable",
    "OutsideEffect",
    "PolicyInvalid",
    "ResultNotEncodable",
    "ResultNotKept",
    "SchemaMissing",
    "SentInTransaction",
    "SettledAsFailed",
    "SettingsInvalid",
    "StepInvalid",
    "TransactionEscaped",
)

_HOMES = {
    "EffectOnce": "effectonce.app.extension",
    "effect": "effectonce.app.current",
    "session": "effectonce.app.current",
    "outbox": "effectonce.app.current",
    "connection": "effectonce.app.current",
    "MESSAGE": "effectonce.domain.policies",
    "Exclusive": "effectonce.domain.policies",
    "Leased": "effectonce.domain.policies",
    "Natural": "effectonce.domain.policies",
    "Transactional": "effectonce.domain.policies",
    "Unique": "effectonce.domain.policies",
    **dict.fromkeys(("Done", "Failed", "NotDone", "Unknown"), "effectonce.domain.steps"),
    **dict.fromkeys(_ERRORS, "effectonce.errors"),
}

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604 - the names are the keys above


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    home = _HOMES.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
