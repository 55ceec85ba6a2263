"""What may be given as a SQL ledger, and what is said of the rest."""

import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from effectonce.app.ledgers import open_ledger
from effectonce.domain.claims import Granted
from effectonce.errors import LedgerUnavailable, SettingsInvalid
from effectonce.stores.sql.ledger import SqlLedger
from effectonce.testing.conformance.scene import granted, new_claim
from tests.integration.sql.scene import NONE, Audited, Charged, Routing, carried_out, charge, charges, open_work

SECRET = "hush"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("nonsense", "no database URL"),
        (f"postgresql+psycopg://me:{SECRET}@host:port/shop", "no database URL"),
        (f"mssql+pyodbc://me:{SECRET}@host/shop", "on mssql is not there yet"),
        (f"oops://me:{SECRET}@host/shop", "on oops is not there yet"),
        (f"postgresql+psycopg2://me:{SECRET}@host/shop", "psycopg2"),
        (f"mysql+mysqldb://me:{SECRET}@host/shop", "needs mariadb.pymysql"),
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("sqlite:///file:shop?mode=memory&uri=true", "in memory"),
        (sa.create_engine("sqlite://"), "in memory"),
        (sessionmaker(bind=sa.create_engine("sqlite://")), "in memory"),
        (42, "not int"),
    ],
    ids=str,
)
def test_a_source_that_cannot_hold_a_ledger_is_refused_when_it_is_opened(given: object, says: str) -> None:
    with pytest.raises(SettingsInvalid, match=says) as refused:
        open_ledger(given, schema=None, create_schema=None)
    error: BaseException | None = refused.value
    while error is not None:
        assert SECRET not in f"{error!s} {error!r}"
        error = error.__cause__


def test_sessions_of_several_engines_do_not_say_which_one_holds_the_ledger() -> None:
    one, other = (sa.create_engine(f"sqlite:///{name}.sqlite") for name in ("one", "other"))
    with pytest.raises(ValueError, match="several engines"):
        SqlLedger.open(sessionmaker(binds={Charged: one, Audited: other}))
    assert SqlLedger.open(sessionmaker(binds={Charged: one, Audited: one})).source.engine is one


def test_sessions_of_one_connection_are_refused(engine: sa.Engine) -> None:
    with engine.connect() as connection, pytest.raises(ValueError, match="one connection"):
        SqlLedger.open(sessionmaker(bind=connection))


def test_an_url_without_a_driver_takes_psycopg(postgresql_url: str) -> None:
    plain = postgresql_url.replace("+psycopg", "")
    for url in (plain, plain.replace("postgresql", "postgres", 1)):
        ledger = SqlLedger.open(url)
        ledger.create_schema()
        ledger.ping()
        ledger.close()


def test_an_urls_own_options_go_before_ours(postgresql_url: str) -> None:
    ledger = SqlLedger.open(f"{postgresql_url}?application_name=shop")
    with ledger.source.engine.connect() as connection:
        assert connection.exec_driver_sql("show application_name").scalar() == "shop"
    ledger.close()


def test_a_pool_of_ours_has_a_connection_for_every_thread(postgresql_url: str) -> None:
    """Twenty bodies hold one each, and renewals still find theirs."""
    ledger = SqlLedger.open(postgresql_url, create_schema=True)
    with ExitStack() as bodies:
        for claim in [new_claim() for _ in range(20)]:
            work = bodies.enter_context(open_work(ledger, claim))
            assert isinstance(work.enter(), Granted)
        assert ledger.read(claim.digest) is None
    ledger.close()


@pytest.mark.parametrize("kind", ["engine", "sessionmaker", "binds", "scoped_session", "routing"])
def test_an_effect_commits_with_what_its_session_wrote(engine: sa.Engine, kind: str) -> None:
    Charged.metadata.create_all(engine)
    source = {
        "engine": engine,
        "sessionmaker": sessionmaker(engine),
        "binds": sessionmaker(binds={Charged: engine}),
        "scoped_session": scoped_session(sessionmaker(engine)),
        "routing": sessionmaker(engine, class_=Routing),
    }[kind]
    ledger = SqlLedger.open(source)
    for dies in (True, False):
        claim = new_claim()
        with open_work(ledger, claim) as work:
            work.enter()
            work.session.add(Charged(effect=claim.digest.hex()))
            charge(work.session, claim)
            if not dies:
                assert work.finish(NONE)
                work.commit()
        with Session(engine) as session:
            assert (session.get(Charged, claim.digest.hex()) is None) is dies
        assert (ledger.read(claim.digest) is None) is dies
        assert charges(engine, claim) == (0 if dies else 1)


def test_what_a_sessionmaker_binds_elsewhere_stays_there(engine: sa.Engine, tmp_path: Path) -> None:
    other = sa.create_engine(f"sqlite:///{tmp_path / 'other.sqlite'}")
    Audited.metadata.create_all(other)
    ledger = SqlLedger.open(sessionmaker(bind=engine, binds={Audited: other}))
    claim = new_claim()
    assert carried_out(ledger, claim, lambda work: work.session.add(Audited(effect=claim.digest.hex())))
    with Session(other) as session:
        assert session.get(Audited, claim.digest.hex()) is not None
    other.dispose()


def test_a_registry_outside_its_application_is_a_ledger_away() -> None:
    def outside() -> Session:
        message = "working outside of application context"
        raise RuntimeError(message)

    ledger = SqlLedger.open(scoped_session(outside))  # type: ignore[arg-type]
    with pytest.raises(LedgerUnavailable, match="application's context"):
        ledger.ping()


def test_an_application_context_tells_a_registrys_engine(engine: sa.Engine) -> None:
    inside: list[bool] = []

    class Context(AbstractContextManager[None]):
        def __enter__(self) -> None:
            inside.append(True)

        def __exit__(self, *_: object) -> None:
            inside.pop()

    def make() -> Session:
        assert inside
        return Session(engine)

    ledger = SqlLedger.open(scoped_session(make), context=Context)  # type: ignore[arg-type]
    ledger.ping()


@pytest.mark.parametrize("at", ["connect", "statement"])
def test_no_error_shows_a_password_or_a_parameter(postgresql_url: str, at: str) -> None:
    url = sa.make_url(postgresql_url)
    ledger = SqlLedger.open(url.set(password=SECRET) if at == "connect" else url)
    ledger._ready = at == "statement"
    with pytest.raises(LedgerUnavailable) as away:
        ledger.claim(new_claim(key="order-42"))
    error: BaseException | None = away.value
    while error is not None:
        assert SECRET not in str(error)
        assert "order-42" not in str(error)
        error = error.__cause__
    assert away.value.ledger.count("***") == 1
    ledger.close()


def test_a_child_does_not_speak_on_a_connection_of_its_parents_pool(postgresql_url: str) -> None:
    """The application used its engine before it forked, and the child's ledger is the first of this library."""
    engine = sa.create_engine(postgresql_url, pool_size=1)
    other = SqlLedger.open(postgresql_url)
    other.create_schema()
    other.close()
    with engine.connect() as connection:
        before = connection.exec_driver_sql("select pg_backend_pid()").scalar()
    assert _in_child(lambda: _backend(SqlLedger.open(engine)) != before)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("select pg_backend_pid()").scalar() == before
    engine.dispose()


def _backend(ledger: SqlLedger) -> object:
    granted(ledger, new_claim())
    with ledger.source.engine.connect() as connection:
        return connection.exec_driver_sql("select pg_backend_pid()").scalar()


def _in_child(question: Callable[[], bool]) -> bool:
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            os._exit(0 if question() else 1)
        except BaseException:  # noqa: BLE001 - a child must not come back into the test
            os._exit(2)
    return os.waitpid(pid, 0)[1] == 0
