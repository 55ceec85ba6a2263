"""The first use of a ledger of our own on SQLite makes its tables, whatever that use is."""

from effectonce.stores.sql.ledger import SqlLedger


def test_a_ping_of_a_new_sqlite_ledger_makes_its_tables(sqlite_url: str) -> None:
    ledger = SqlLedger.open(sqlite_url)
    ledger.ping()
    assert ledger.entries(state=None, limit=1) == []
    ledger.close()
