"""The specification of a ledger store, as tests that it passes unchanged.

A store that passes does all that `effectonce.ports.LedgerStore` and `effectonce.domain.claims` promise. To hold your
own store to it, subclass `LedgerConformance` in a test module and say how a store is made::

    from collections.abc import Iterator

    import pytest

    from effectonce.ports import LedgerStore
    from effectonce.testing.conformance import LedgerConformance
    from shelf import ShelfLedger


    class TestShelfLedger(LedgerConformance):
        @pytest.fixture
        def store(self) -> Iterator[LedgerStore]:
            store = ShelfLedger.open("shelf://localhost")
            store.create_schema()
            yield store
            store.close()

        def set_fence(self, store: LedgerStore, digest: bytes, fence: int) -> None:
            store.connection.execute("update shelf set fence = ? where digest = ?", fence, digest)

The fixture may have any scope: each test uses effects of its own, and stands the entries of others. ``set_fence``
plays the restored backup and the clock that was set back; the suite cannot do that through the port. Time is the
store's own: the suite claims with short leases and asks the store until it says that they have ended. A store whose
clock the tests hold overrides ``wait`` to move it on. Nothing but pytest is needed.
"""

import pytest

_RULES = (
    "admission",
    "claiming",
    "crowds",
    "following",
    "holding",
    "looking",
    "observing",
    "outbox",
    "renewing",
    "rescuing",
    "reserving",
    "scene",
    "settling",
    "steps",
    "terms",
    "storing",
    "ticking",
    "keeping",
)
pytest.register_assert_rewrite(*(f"{__name__}.{rules}" for rules in _RULES))

from effectonce.testing.conformance.admission import Admission  # noqa: E402 - rewritten on import
from effectonce.testing.conformance.claiming import Claiming  # noqa: E402
from effectonce.testing.conformance.crowds import Crowds  # noqa: E402
from effectonce.testing.conformance.following import Followers  # noqa: E402
from effectonce.testing.conformance.holding import Holding  # noqa: E402
from effectonce.testing.conformance.keeping import Keeping  # noqa: E402
from effectonce.testing.conformance.looking import Looking  # noqa: E402
from effectonce.testing.conformance.observing import Observing  # noqa: E402
from effectonce.testing.conformance.outbox import OutboxConformance  # noqa: E402
from effectonce.testing.conformance.renewing import Renewing  # noqa: E402
from effectonce.testing.conformance.rescuing import Rescuing  # noqa: E402
from effectonce.testing.conformance.reserving import Reserving  # noqa: E402
from effectonce.testing.conformance.settling import Settling  # noqa: E402
from effectonce.testing.conformance.steps import Steps  # noqa: E402
from effectonce.testing.conformance.storing import StoringTicks  # noqa: E402
from effectonce.testing.conformance.terms import Terms  # noqa: E402
from effectonce.testing.conformance.ticking import Ticks  # noqa: E402

__all__ = ["LedgerConformance", "OutboxConformance", "ScheduleConformance", "StoringConformance"]


class LedgerConformance(
    Claiming,
    Admission,
    Settling,
    Renewing,
    Rescuing,
    Holding,
    Looking,
    Followers,
    Reserving,
    Crowds,
    Steps,
    Keeping,
    Observing,
):
    """All rules of a ledger store."""


class ScheduleConformance(Terms, Ticks):
    """All rules of a store of terms and ticks (`effectonce.ports.ScheduleStore`); its fixture is ``schedule``."""


class StoringConformance(ScheduleConformance, StoringTicks):
    """The same for a store with an outbox beside it (`effectonce.ports.StoringTickStore`); its fixture: ``outbox``."""
