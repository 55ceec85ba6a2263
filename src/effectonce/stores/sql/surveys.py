"""What a SQL ledger says about itself: counts over small indices, estimates of the database, searches in pieces."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, text

from effectonce.domain.claims import State
from effectonce.ports.surveys import Leaf, Pooling, Size
from effectonce.stores.sql.dialects import MICROS
from effectonce.stores.sql.rows import entry_of
from effectonce.stores.sql.schema import missing_indexes

if TYPE_CHECKING:
    from effectonce.stores.sql.ledger import SqlLedger

_ESCAPE: Final = "!"

_SIZES: Final[Mapping[str, str]] = {
    "postgresql": "select coalesce(sum(pg_total_relation_size(c.oid)), 0), coalesce(max(c.reltuples) filter "
    "(where c.relname = 'effectonce_entries'), 0) from pg_class c join pg_namespace n on n.oid = c.relnamespace "
    "where c.relkind = 'r' and c.relname like 'effectonce\\_%' and n.nspname = coalesce(:schema, current_schema())",
    "mariadb": "select coalesce(sum(data_length + index_length), 0), coalesce(max(case when table_name = "
    "'effectonce_entries' then table_rows end), 0) from information_schema.tables "
    "where table_name like 'effectonce\\_%' and table_schema = coalesce(:schema, database())",
    "sqlite": "select (select page_count * page_size from pragma_page_count, pragma_page_size), "
    "(select coalesce(max(rowid), 0) from effectonce_entries) where :schema is null or 1 = 1",
}


class SqlSurvey:
    """See `ports.surveys.SurveyStore`."""

    def __init__(self, ledger: "SqlLedger", *, schema: str | None) -> None:
        self._ledger = ledger
        self._schema = schema

    def standing(self) -> Mapping[State, int]:
        """See `ports.surveys.SurveyStore.standing`."""
        statements = self._ledger.statements

        def look(connection: Connection) -> dict[State, int]:
            found = {State(state): number for state, number in connection.execute(statements.standing)}
            return {State.CLAIMED: connection.execute(statements.in_flight).scalar() or 0, **found}

        return self._ledger.look(look)

    def size(self) -> Size:
        """See `ports.surveys.SurveyStore.size`; on SQLite the largest row number stands for the count."""
        statement = text(_SIZES[self._ledger.dialect.name])
        row = self._ledger.look(lambda connection: connection.execute(statement, {"schema": self._schema}).one())
        return Size(bytes=int(row[0]), entries=max(int(row[1]), 0))

    def search(self, words: str, *, state: State | None, limit: int, look: int, after: bytes | None) -> Leaf:
        """See `ports.surveys.SurveyStore.search`."""
        start = after or b""
        if state in {State.CLAIMED, State.UNKNOWN, State.POISONED}:
            return self._search_open(words, state, limit=limit, look=look, after=start)
        values: dict[str, Any] = {
            "after": start,
            "look": look,
            "state": int(state or 0),
            "limit": limit,
            "words": f"%{_escaped(words)}%",
        }
        statements = self._ledger.statements

        def search(connection: Connection) -> Leaf:
            end, last = self._ledger.page_on(connection, look, start)
            found = [entry_of(row) for row in connection.execute(statements.search, {**values, "last": last})]
            if len(found) == limit:
                end = found[-1].digest
            return Leaf(found=found, looked=look, after=end)

        return self._ledger.look(search)

    def _search_open(self, words: str, state: State, *, limit: int, look: int, after: bytes) -> Leaf:
        """Few entries stand open, and an index has them."""
        statement = self._ledger.page_of(state)
        most = look if words else limit
        values = {"state": int(state), "after": after, "limit": most}
        rows = self._ledger.look(lambda connection: [entry_of(row) for row in connection.execute(statement, values)])
        found = [entry for entry in rows if words.lower() in f"{entry.key}\0{entry.task_id}".lower()][:limit]
        is_over = len(rows) < most and len(found) < limit
        last = found[-1] if len(found) == limit else rows[-1] if rows else None
        return Leaf(found=found, looked=len(rows), after=None if is_over or last is None else last.digest)

    def now(self) -> float:
        """See `ports.surveys.SurveyStore.now`."""
        statement = text(f"select {self._ledger.dialect.clock}")
        found: Any = self._ledger.look(lambda connection: connection.execute(statement).scalar())
        return float(found) / MICROS

    def pooling(self) -> Pooling | None:
        """See `ports.surveys.SurveyStore.pooling`; a pooler tells its clients another number than the server has."""
        if self._ledger.dialect.name != "postgresql":
            return None

        def look(connection: Connection) -> Pooling:
            driver: Any = connection.connection.driver_connection
            told = driver.info.backend_pid
            theirs = connection.execute(text("select pg_backend_pid()")).scalar()
            return Pooling(pooled=told != theirs, threshold=driver.prepare_threshold)

        return self._ledger.look(look)

    def missing_indices(self) -> Sequence[str]:
        """See `ports.surveys.SurveyStore.missing_indices`."""
        tables = self._ledger.tables
        missing = self._ledger.look(lambda connection: missing_indexes(connection, tables))
        return [f"{index.table.name}.{index.name}" for index in missing if index.table is not None]


def _escaped(words: str) -> str:
    for sign in (_ESCAPE, "%", "_"):
        words = words.replace(sign, _ESCAPE + sign)
    return words
