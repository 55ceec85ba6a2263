"""The doctor: asks the running system what can duplicate or lose work in it.

Every check is a question with an answer in facts, a severity, and the setting that mends it. A check that cannot be
asked is told as such; it is never taken for well. When the ledger does not answer, only that is told of it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from effectonce.app.doctor import broker, ledgers, work
from effectonce.app.doctor.findings import Check, Finding, Severity
from effectonce.app.doctor.patient import WAIT, Patient

if TYPE_CHECKING:
    from effectonce.app.extension import EffectOnce

__all__ = ["CHECKS", "NOT_ASKED", "Check", "Finding", "Severity", "examine"]

NOT_ASKED: Final = "check-not-asked"
"""The code of a check that failed itself."""

CHECKS: Final[tuple[Check, ...]] = (ledgers.UNREACHABLE, *broker.CHECKS, *ledgers.CHECKS, *work.CHECKS)
_WITHOUT_LEDGER: Final = frozenset(
    {"keep-below-horizon", "no-result-serializer", "early-ack", "workers-differ", "worker-unguarded"}
    | {"no-worker-answers", *(check.code for check in broker.CHECKS)}
)


def examine(once: "EffectOnce", *, wait: float = WAIT, only: Sequence[str] = ()) -> list[Finding]:
    """Ask everything, or *only* the checks with these codes; the worst comes first.

    *wait*: seconds for which workers are listened to. Nothing is changed.
    """
    patient = Patient(once, wait=wait)
    away = _asked(ledgers.UNREACHABLE, patient)
    wanted = [check for check in CHECKS if check is not ledgers.UNREACHABLE and (not only or check.code in only)]
    if away:
        wanted = [check for check in wanted if check.code in _WITHOUT_LEDGER]
    found = [*away, *(finding for check in wanted for finding in _asked(check, patient))]
    return sorted(found, key=lambda finding: (-finding.severity, finding.code))


def _asked(check: Check, patient: Patient) -> list[Finding]:
    try:
        return [
            Finding(code=check.code, severity=check.severity, title=check.title, setting=check.setting, facts=facts)
            for facts in check.look(patient)
        ]
    except Exception as error:  # noqa: BLE001 - a question that fails is told, and the others are asked
        facts = {"check": check.code, "why": f"{type(error).__name__}: {str(error)[:200]}"}
        title = "A check could not ask its question"
        setting = "whatever keeps it from asking: rights, network, versions"
        return [Finding(code=NOT_ASKED, severity=Severity.INFO, title=title, setting=setting, facts=facts)]
