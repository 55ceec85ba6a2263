"""The transaction of one HTTP request on a connection of its host's: a block of the host, around the view."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from effectonce.domain.claims import Claim, Granted, Outcome, Refused
from effectonce.errors import FenceRefused
from effectonce.stores.sql.exchanges import MOMENT, stands
from effectonce.stores.sql.hosted_work import HostedWork
from effectonce.stores.sql.transactions import SETTLE_WAIT
from effectonce.stores.sql.work import CLOSED

if TYPE_CHECKING:
    from effectonce.stores.sql.hosted import HostedLedger

T = TypeVar("T")


class HostedExchange(HostedWork):
    """See `ports.exchanges.ExchangeWork`. The view may write where it likes, but not leave its block without a word."""

    is_async = False

    def __init__(self, ledger: "HostedLedger", claim: Claim, granted: Granted) -> None:
        super().__init__(ledger, claim, granted=granted, allow_escape=True, keep=claim.keep)
        self._held = granted

    @property
    def face(self) -> object:
        """SQLAlchemy on the host's connection; the view's own ORM is in the same transaction."""
        return self.session

    def open(self) -> None:
        """See `ports.exchanges.ExchangeWork.open`."""
        end, granted = time.monotonic() + SETTLE_WAIT, self._held
        while isinstance(self.enter(), Refused):
            self.rollback()
            if time.monotonic() > end or not stands(self._ledger.read(granted.digest), granted):
                raise FenceRefused(key=self._claim.key, fence=granted.fence, attempt=granted.attempt.hex())
            time.sleep(MOMENT)  # a twin that looks at the entry has the try-lock for a moment

    def seal(self) -> None:
        """Take what SQLAlchemy's session holds into the transaction."""
        if self._session is not None:
            self._session.flush()

    def finish(self, outcome: Outcome | None) -> bool:
        """See `ports.exchanges.ExchangeWork.finish`."""
        assert outcome is not None, "a view without a key has no block of ours"  # noqa: S101 - a mistake of ours
        return super().finish(outcome)

    async def spawn(self, call: Callable[[], T]) -> T:
        """Nothing here is asynchronous."""
        return call()

    def _open_again(self) -> None:
        """The host has lost the work, without a word."""
        raise self._escaped(CLOSED)
