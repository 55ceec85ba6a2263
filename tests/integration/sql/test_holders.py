"""Who holds a key on PostgreSQL, and a holder that is frozen."""

from typing import Any

import pytest
import sqlalchemy as sa

from effectonce.domain.claims import Granted, Refused
from effectonce.errors import LedgerUnavailable
from effectonce.lab.process_tree import wait_until
from effectonce.ports import Work
from effectonce.stores.sql.ledger import SqlLedger
from effectonce.testing.conformance.scene import new_claim
from tests.integration.sql.scene import NONE, carried_out, charge, charges, open_work

LIMIT = "select current_setting('idle_in_transaction_session_timeout')"


@pytest.fixture(params=["postgresql"])
def database(postgresql_url: str) -> str:
    """PostgreSQL only: SQLite has no sessions that outlive a process."""
    return postgresql_url


def test_a_frozen_holder_loses_its_key_after_its_time_limit_and_a_lease(ledger: SqlLedger) -> None:
    """H10 and rule 2: nobody but the server can end a transaction whose client stopped with its whole worker."""
    frozen = new_claim(time_limit=0.3, lease=0.3)
    copy = new_claim(digest=frozen.digest)
    with open_work(ledger, frozen) as work:
        assert isinstance(work.enter(), Granted)
        charge(work.connection, frozen)
        assert isinstance(carried_out(ledger, copy, lambda work: charge(work.connection, copy)), Refused)
        taken = wait_until(
            lambda: carried_out(ledger, copy, lambda work: charge(work.connection, copy)) is True, seconds=10
        )
        assert taken
        with pytest.raises(LedgerUnavailable):
            _ended(work)
    assert charges(ledger.source.engine, frozen) == 1


def test_the_limit_of_a_transaction_ends_with_it(ledger: SqlLedger) -> None:
    """The connection goes back to the pool as it was."""
    with ledger.source.engine.connect() as connection:
        before = connection.execute(sa.text(LIMIT)).scalar()
    limited = new_claim(time_limit=5.0, lease=60.0)
    seen: list[Any] = []
    carried_out(ledger, limited, lambda work: seen.append(work.connection.execute(sa.text(LIMIT)).scalar()))
    with ledger.source.engine.connect() as connection:
        after = connection.execute(sa.text(LIMIT)).scalar()
    assert seen == ["65s"]
    assert after == before


def test_without_a_time_limit_the_servers_own_limit_stands(ledger: SqlLedger) -> None:
    """A body may think for as long as it likes."""
    seen: list[Any] = []
    with ledger.source.engine.connect() as connection:
        own = connection.execute(sa.text(LIMIT)).scalar()
    carried_out(ledger, new_claim(), lambda work: seen.append(work.connection.execute(sa.text(LIMIT)).scalar()))
    assert seen == [own]


def test_a_key_that_is_held_names_the_backend_that_holds_it(ledger: SqlLedger) -> None:
    """A person can end that session."""
    held = new_claim()
    with open_work(ledger, held) as work:
        work.enter()
        pid = work.connection.execute(sa.text("select pg_backend_pid()")).scalar()
        holder = ledger.holder(held.digest)
        assert holder is not None
        assert f"backend {pid} (" in holder
        assert ", idle in transaction for " in holder
        assert ledger.holder(new_claim().digest) is None
    assert ledger.holder(held.digest) is None


def _ended(work: Work) -> None:
    work.finish(NONE)
    work.commit()
