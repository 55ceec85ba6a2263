"""Django, set up once in the process of the tests, over databases that they make.

=============== ========================================================================
alias           goes to
=============== ========================================================================
``default``     PostgreSQL
``lite``        a file of SQLite
``twin``        the database of ``default``, once more
``lite_twin``   the file of ``lite``, once more
``elsewhere``   another file
``manual``      the database of ``default``, with autocommit off
``serial``      the database of ``default``, at SERIALIZABLE
``binding``     the database of ``default``, with parameters bound by the server
``immediate``   the file of ``lite``, whose transactions begin with the write lock
``maria``       MariaDB, through PyMySQL
``maria_twin``  the database of ``maria``, once more
=============== ========================================================================
"""

from pathlib import Path
from typing import Any

import django
import pymysql
import sqlalchemy as sa
from django.conf import settings
from django.core.management import call_command
from django.db import connections

POSTGRESQL = {"ENGINE": "django.db.backends.postgresql", "NAME": "nowhere"}
SQLITE = {"ENGINE": "django.db.backends.sqlite3", "NAME": "nowhere.sqlite"}
MARIADB = {"ENGINE": "django.db.backends.mysql", "NAME": "nowhere", "OPTIONS": {"charset": "utf8mb4"}}
DATABASES: dict[str, dict[str, Any]] = {
    "default": {**POSTGRESQL},
    "twin": {**POSTGRESQL},
    "manual": {**POSTGRESQL, "AUTOCOMMIT": False},
    "serial": {**POSTGRESQL, "OPTIONS": {"isolation_level": 4}},
    "binding": {**POSTGRESQL, "OPTIONS": {"server_side_binding": True}},
    "lite": {**SQLITE},
    "immediate": {**SQLITE, "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 1}},
    "lite_twin": {**SQLITE},
    "elsewhere": {**SQLITE},
    "maria": {**MARIADB},
    "maria_twin": {**MARIADB},
}


def set_up() -> None:
    """Configure Django unless that is done."""
    if not settings.configured:
        pymysql.install_as_MySQLdb()
        settings.configure(
            DATABASES=DATABASES,
            INSTALLED_APPS=["effectonce.contrib.django", "tests.integration.django.books"],
            ROOT_URLCONF="tests.integration.django.books.urls",
            SECRET_KEY="of a test",
            USE_TZ=True,
        )
        django.setup()


def give_postgresql(url: str) -> None:
    """Let the aliases of PostgreSQL go to a database, and create its tables."""
    for alias in [name for name, each in DATABASES.items() if each["ENGINE"] == POSTGRESQL["ENGINE"]]:
        _lead(alias, url)
    _migrate("default")


def give_mariadb(url: str) -> None:
    """Let the aliases of MariaDB go to a database, and create its tables."""
    for alias in ("maria", "maria_twin"):
        _lead(alias, url)
    _migrate("maria")


def _lead(alias: str, url: str) -> None:
    parsed = sa.make_url(url)
    connections[alias].close()
    connections.settings[alias].update(
        NAME=parsed.database,
        USER=parsed.username or "",
        PASSWORD=parsed.password or "",
        HOST=parsed.host or parsed.query.get("host", ""),
        PORT=parsed.port or parsed.query.get("port", ""),
    )


def give_sqlite(folder: Path) -> None:
    """Let the aliases of SQLite go to files in *folder*, and create their tables."""
    files = {"lite": "lite", "lite_twin": "lite", "immediate": "lite", "elsewhere": "elsewhere"}
    for alias, name in files.items():
        connections[alias].close()
        connections.settings[alias].update(NAME=folder / f"{name}.sqlite")
    for alias in ("lite", "elsewhere"):
        _migrate(alias)


def _migrate(alias: str) -> None:
    call_command("migrate", database=alias, run_syncdb=True, verbosity=0)


def empty(alias: str) -> None:
    """Forget entries and charges."""
    with connections[alias].cursor() as cursor:
        ours = [name for name in connections[alias].introspection.table_names() if name.startswith("effectonce_")]
        for table in ("books_receipt", "books_charge", *(name for name in ours if name != "effectonce_meta")):
            cursor.execute(f"delete from {table}")


set_up()
