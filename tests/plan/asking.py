"""What a database means to do with a statement, in its own words."""

import json
from typing import Any

import sqlalchemy as sa

from effectonce.stores.sql.ledger import SqlLedger


def plan_of(ledger: SqlLedger, statement: sa.TextClause, values: dict[str, Any]) -> str:
    """PostgreSQL's tree as JSON; of MariaDB for each table its name, how it is read, by which index, and what else."""
    with ledger.source.engine.connect() as connection:
        if ledger.dialect.name != "mariadb":
            tree = connection.execute(sa.text(f"explain (format json) {statement.text}"), values).scalar()
            return json.dumps(tree)
        words = statement.text
        if words.startswith("set statement"):
            words = words.partition(" for ")[2]
        asked = sa.text(f"explain {words}").bindparams(*statement._bindparams.values())
        given = {name: value for name, value in values.items() if name in asked._bindparams}
        rows = connection.execute(asked, given).mappings()
        return "; ".join(
            f"{row['table']} {row['type']} {row['key']} {row['Extra'].replace(';', ',')}"
            for row in rows
            if row["table"]
        )


def reads_all(ledger: SqlLedger, plan: str, table: str) -> bool:
    """Whether a plan goes through a whole table, or through all of an index of it."""
    if ledger.dialect.name != "mariadb":
        return f'"Seq Scan", "Parallel Aware": false, "Async Capable": false, "Relation Name": "{table}"' in plan
    return any(line.split()[1] in {"ALL", "index"} and line.split()[2] == "None" for line in plan.split("; "))


def analyze(ledger: SqlLedger) -> None:
    """Let the database learn how its tables have grown."""
    names = [table.name for table in ledger.tables.metadata.sorted_tables]
    with ledger.source.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        is_mariadb = ledger.dialect.name == "mariadb"
        connection.exec_driver_sql(f"analyze table {', '.join(names)}" if is_mariadb else "vacuum analyze")
