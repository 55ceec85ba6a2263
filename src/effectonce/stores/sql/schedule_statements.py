"""The statements of terms and ticks: one round trip each, with the lock it takes and the index it uses.

None waits for a leader. One may wait for another's claim on the same instant, which is a transaction of a few
statements; a leader that is stopped in the middle of one is cut off by the server after a lease (PostgreSQL).
"""

from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import Table, text

from effectonce.domain.ticks import UNMARKED, TickState

TERM_COLUMNS: Final = "digest, name, fence, holder, who, since, ends"
TICK_COLUMNS: Final = "entry, instant, state, fence, at, missed, following, term, name"

KEPT: Final = 20
"""Ticks of an entry that are kept, the last one among them."""

CLAIMED, SENT = int(TickState.CLAIMED), int(TickState.SENT)
_UNMARKED: Final = f"({', '.join(str(int(state)) for state in sorted(UNMARKED))})"


class ScheduleStatements:
    """The statements for one dialect and one schema."""

    def __init__(self, dialect: Any, terms: Table, ticks: Table, quote: Callable[[Table], str]) -> None:
        self._add_terms(dialect, quote(terms))
        self._add_claims(dialect, quote(terms), quote(ticks))
        self._add_looking(quote(terms), quote(ticks), dialect.clock)

    def _add_terms(self, dialect: Any, terms: str) -> None:
        clock = dialect.clock
        stands = f"digest = :term and fence = :fence and holder = :holder and ends > {clock}"
        # Primary key; a concurrent first one waits for us.
        values = (
            f"select :term, :name, c.now, :holder, :who, c.now, c.now + :length from (select {clock} as now) c "
            f"where not exists (select 1 from {terms} where digest = :term)"
        )
        self.first = text(dialect.insert_new(terms, TERM_COLUMNS, values, unique="digest"))
        # The row's lock; primary key.
        self.win = text(
            f"update {terms} set fence = case when fence + 1 > {clock} then fence + 1 else {clock} end, "
            f"holder = :holder, who = :who, since = {clock}, ends = {clock} + :length "
            f"where digest = :term and ends <= {clock}"
        )
        # No lock; primary key.
        self.fence = text(f"select fence from {terms} where digest = :term and holder = :holder")
        self.mine = text(f"select fence from {terms} where digest = :term and holder = :holder and ends > {clock}")
        # The row's lock; primary key.
        self.renew = text(f"update {terms} set ends = {clock} + :length where {stands}")
        self.resign = text(f"update {terms} set ends = {clock} where {stands}")
        # No lock; primary key.
        mortal = (
            "set_config('idle_in_transaction_session_timeout', :patience, true) is not null and "
            if dialect.name == "postgresql"
            else ":patience is not null and "
        )
        self.stands = text(f"select {mortal}exists (select 1 from {terms} where {stands})")

    def _add_claims(self, dialect: Any, terms: str, ticks: str) -> None:
        clock = dialect.clock
        stands = (
            f"exists (select 1 from {terms} where digest = :term and fence = :fence and holder = :holder "
            f"and ends > {clock})"
        )
        # The index of instants; waits for another's claim on the same one.
        values = (
            f"select :entry, :instant, :state, :fence, c.now, :missed, :following, :term, :name "
            f"from (select {clock} as now) c where {stands} and :instant <= c.now + :ahead and not exists "
            f"(select 1 from {ticks} where entry = :entry and instant >= :instant)"
        )
        self.claim = text(dialect.insert_new(ticks, TICK_COLUMNS, values, unique="entry, instant"))
        # The row's lock; the index of instants.
        self.adopt = text(
            f"update {ticks} set state = :state, fence = :fence, at = {clock} "
            f"where entry = :entry and instant = :instant and state = {CLAIMED} and {stands}"
        )
        # No lock; primary key. Why a claim was refused.
        self.why = text(f"select case when not {stands} then 3 when :instant > {clock} + :ahead then 2 else 0 end")
        # Row locks; the index of instants.
        self.trim = text(
            f"delete from {ticks} where entry = :entry and state not in {_UNMARKED} and instant < "
            f"(select min(instant) from (select instant from {ticks} where entry = :entry "
            f"order by instant desc limit {KEPT}) newest)"
        )
        # The row's lock; the index of instants.
        self.mark = text(
            f"update {ticks} set state = {SENT} where entry = :entry and instant = :instant and state in {_UNMARKED}"
        )

    def _add_looking(self, terms: str, ticks: str, clock: str) -> None:
        # No lock; the index of unmarked ticks.
        self.unmarked = text(
            f"select {TICK_COLUMNS} from {ticks} where state in {_UNMARKED} and term = :term order by instant, name"
        )
        # No lock; the index of instants.
        self.last = text(f"select {TICK_COLUMNS} from {ticks} t where entry = :entry order by instant desc limit 1")
        # No lock; reads the whole table: for people.
        self.recent = text(
            f"select {', '.join(f't.{column}' for column in TICK_COLUMNS.split(', '))}, s.name as term_name "
            f"from {ticks} t join {terms} s on s.digest = t.term order by t.instant desc limit :limit"
        )
        # No lock; reads the whole index of instants: for people.
        self.coming = text(
            f"select {', '.join(f't.{column}' for column in TICK_COLUMNS.split(', '))}, s.name as term_name "
            f"from {ticks} t join {terms} s on s.digest = t.term "
            f"join (select entry, max(instant) as instant from {ticks} group by entry) newest "
            "on newest.entry = t.entry and newest.instant = t.instant "
            "where t.following is not null order by t.following, t.name limit :limit"
        )
        self.seats = text(f"select {TERM_COLUMNS}, {clock} as now from {terms} order by name")
