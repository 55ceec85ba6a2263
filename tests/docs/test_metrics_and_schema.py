"""The pages on metrics and on the schema name what there is, and no other."""

import re

from prometheus_client import Counter

from effectonce.app.exporter import _GAUGES
from effectonce.observers import metrics
from effectonce.stores.sql.tables import tables
from tests.docs.pages import named

TABLES = tables(None).metadata.sorted_tables


def _words(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def test_every_counter_stands_in_the_reference_with_its_labels() -> None:
    counters = [each for each in vars(metrics).values() if isinstance(each, Counter)]
    shown = {name: _words(row[1]) for name, row in named("metrics.md", after="## Counters\n").items()}
    assert shown == {f"{each._name}_total": list(each._labelnames) for each in counters}


def test_every_figure_of_the_ledger_stands_in_the_reference_with_its_labels() -> None:
    shown = {name: _words(row[1]) for name, row in named("metrics.md", after="## Figures of the ledger\n").items()}
    assert shown == {name: labels for name, (_, labels) in _GAUGES.items()}


def test_every_table_stands_in_the_reference() -> None:
    assert set(named("schema.md", after="## Tables\n")) == {table.name for table in TABLES}


def test_every_index_stands_in_the_reference() -> None:
    assert set(named("schema.md", after="## Indexes\n")) == {index.name for table in TABLES for index in table.indexes}


def test_every_column_stands_in_the_reference() -> None:
    shown = {name: _words(row[1]) for name, row in named("schema.md", after="## Columns\n").items()}
    assert shown == {table.name: [column.name for column in table.columns] for table in TABLES}
