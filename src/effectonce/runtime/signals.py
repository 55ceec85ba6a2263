"""How an attempt tells its caller what became of it, past everything in between.

Between the body and the caller lie the user's own ``__call__``, ``autoretry_for`` and ``except Exception``. None of
them may take our answer for a failure of the body, so these derive from BaseException. They never leave the app
layer.
"""

from effectonce.domain.claims import Verdict
from effectonce.errors import CommitUncertain, EffectOnceError, LedgerUnavailable


class Signal(BaseException):
    """Base of what an attempt tells its caller."""


class Refusal(Signal):
    """The claim was refused; *verdict* says what the delivery does about it."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict


class Fenced(Signal):
    """The attempt lost its claim before it could settle: what it did in a transaction is rolled back."""


class Away(Signal):
    """The ledger could not be asked; *error* says why. Nothing of a transaction is left, unless it says uncertain."""

    def __init__(self, error: EffectOnceError) -> None:
        super().__init__(error)
        self.error = error


class Undecided(Signal):
    """Nobody knows whether *step* took place, None being a body that recorded none, and the task says hold."""

    def __init__(self, step: str | None) -> None:
        super().__init__(step)
        self.step = step


class Remembered(Signal):
    """The body failed in a way that the policy remembers; the failure is written."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Raised(Signal):
    """An error of ours came out of the body; it must not start a retry."""

    def __init__(self, error: EffectOnceError) -> None:
        super().__init__(error)
        self.error = error


def signal_of(error: EffectOnceError) -> Signal:
    """How an error of ours that came out of a body travels on: a ledger that was away puts the message off."""
    return Away(error) if isinstance(error, (LedgerUnavailable, CommitUncertain)) else Raised(error)
