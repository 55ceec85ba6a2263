"""What a policy does that is only observed, or off: the body is as if nobody looked, and its face works."""

import itertools
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import sqlalchemy as sa
from celery import Celery
from celery.concurrency.solo import TaskPool
from celery.exceptions import Retry
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from effectonce import EffectOnce, Exclusive, Leased, LedgerUnavailable, Natural, OutsideEffect, Transactional, Unique
from effectonce.domain.claims import State
from effectonce.domain.sightings import Would
from effectonce.stores.memory import MemoryLedger
from tests.integration.app.test_unique import Wire

_numbers = itertools.count()
AWAY = LedgerUnavailable(ledger="memory://", reason="it is away")
ONE, TWO = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def watched(app: Celery) -> EffectOnce:
    """An app that only observes."""
    return EffectOnce(app, ledger=f"memory://modes{next(_numbers)}", mode="observe", lease_seconds=0.5)


def seen(once: EffectOnce) -> dict[tuple[Would, bool], int]:
    return {(each.would, each.again): each.times for each in once.ledger.sightings(limit=100)}


def noting(notes: list[int]) -> Callable[[int], int]:
    def body(x: int) -> int:
        notes.append(x)
        return x

    return body


class TestObserve:
    def test_every_body_runs_and_what_would_not_have_run_is_counted(self, app: Celery, watched: EffectOnce) -> None:
        notes: list[int] = []
        work = app.task(name="w", once=Leased("w:{x}"))(noting(notes))
        results = [work.apply((1,), task_id=task_id).get() for task_id in (ONE, ONE, TWO)]
        assert (notes, results) == ([1, 1, 1], [1, 1, 1])
        assert seen(watched) == {(Would.REPLAY, True): 1, (Would.REPLAY, False): 1}
        assert [entry.state for entry in watched.ledger.find("w:1")] == [State.COMPLETED]

    def test_what_was_observed_is_known_when_the_policy_is_enforced(self, make_app: Callable[..., Celery]) -> None:
        notes: list[int] = []
        ledger = f"memory://modes{next(_numbers)}"
        for mode in ("observe", "enforce"):
            app = make_app()
            EffectOnce(app, ledger=ledger, mode=mode)
            work = app.task(name="w", once=Leased("w:{x}"))(noting(notes))
            assert work.apply((1,)).get() == 1
        assert notes == [1]

    def test_other_arguments_and_a_busy_key_are_seen_and_refuse_nobody(self, app: Celery, watched: EffectOnce) -> None:
        inner: list[Any] = []

        def body(x: int, note: str = "") -> int:
            if note == "outer":
                inner.append(work(x, note="inner"))
            return x

        work = app.task(name="w", once=Leased("w:{x}"))(body)
        assert work(1, note="outer") == 1
        assert work(1, note="other") == 1
        assert inner == [1]
        assert set(seen(watched)) == {(Would.REUSE, False)}

    @pytest.mark.parametrize(
        ("on_busy", "would"), [("skip", Would.SKIP), ("raise", Would.BUSY), ("defer", Would.DEFER)]
    )
    def test_what_a_busy_one_would_have_met_is_what_its_policy_says(
        self, app: Celery, watched: EffectOnce, on_busy: Any, would: Would
    ) -> None:
        def body(x: int) -> int:
            return int(work(x - 1)) if x else 0

        work = app.task(name="w", once=Exclusive("w", on_busy=on_busy))(body)
        assert work(1) == 0
        assert seen(watched) == {(would, False): 1}

    def test_a_ledger_that_is_away_is_a_warning(
        self, app: Celery, watched: EffectOnce, caplog: pytest.LogCaptureFixture
    ) -> None:
        work = app.task(name="w", once=Leased("w:{x}"))(noting([]))
        with patch.object(MemoryLedger, "claim", side_effect=AWAY), caplog.at_level(logging.WARNING, "effectonce"):
            assert work.apply((1,)).get() == 1
        assert "w:1 was not observed: the ledger does not answer" in caplog.text
        assert watched.ledger.find("w:1") == []

    def test_a_call_without_a_key_runs_and_is_seen(self, app: Celery, watched: EffectOnce) -> None:
        work = app.task(name="w", once=Leased())(noting([]))
        empty = app.task(name="e", once=Leased("e:{x}"))(noting([]))
        assert work.apply((1,)).get() == 1
        assert empty.apply(("",)).get() == ""
        assert {(each.task, each.would) for each in watched.ledger.sightings(limit=9)} == {
            ("w", Would.NO_KEY),
            ("e", Would.NO_KEY),
        }

    def test_arguments_that_do_not_fit_are_for_the_body_to_refuse(self, app: Celery, watched: EffectOnce) -> None:
        work = app.task(name="w", once=Leased("w:{x}"))(noting([]))
        with pytest.raises(TypeError, match="missing 1 required"):
            work()
        assert seen(watched) == {}

    def test_a_failure_lets_the_key_go_and_a_remembered_one_is_recorded(self, app: Celery, watched: EffectOnce) -> None:
        def body(x: int) -> None:
            raise ValueError(x)

        failing = app.task(name="f", once=Leased("f:{x}"))(body)
        refused = app.task(name="r", once=Leased("r:{x}", remember=[ValueError]))(body)
        for task in (failing, failing, refused, refused):
            with pytest.raises(ValueError, match="1"):
                task(1)
        assert [entry.state for key in ("f:1", "r:1") for entry in watched.ledger.find(key)] == [
            State.RELEASED,
            State.FAILED,
        ]
        assert seen(watched) == {(Would.REPLAY, False): 1}

    def test_a_retry_is_no_duplicate(self, app: Celery, watched: EffectOnce) -> None:
        wire = Wire(app)

        def body(self: Any, x: int) -> int:
            if self.request.retries == 0:
                raise self.retry(countdown=0)
            return x

        work = app.task(name="w", bind=True, once=Leased("w:{x}"))(body)
        first = app.tasks["w"]
        first.push_request(id=ONE, args=(1,), kwargs={}, called_directly=False, retries=0)
        try:
            with pytest.raises(Retry):
                first(1)
        finally:
            first.pop_request()
        assert wire.ids == [ONE]
        assert work.apply((1,), task_id=ONE, retries=1).get() == 1
        assert seen(watched) == {}

    def test_a_second_send_goes_out_and_is_counted(self, app: Celery, watched: EffectOnce) -> None:
        wire = Wire(app)
        work = app.task(name="w", once=Unique("w:{x}"))(noting([]))
        assert [work.delay(1).duplicate, work.delay(1).duplicate] == [False, False]
        assert len(wire.ids) == 2
        assert seen(watched) == {(Would.NOT_SEND, False): 1}
        with patch.object(MemoryLedger, "reserve", side_effect=AWAY):
            work.delay(1)
        assert len(wire.ids) == 3

    def test_a_key_at_a_call_that_has_its_own_is_no_error(self, app: Celery, watched: EffectOnce) -> None:
        wire = Wire(app)
        work = app.task(name="w", once=Leased("w:{x}"))(noting([]))
        work.apply_async((1,), effect_key="mine")
        assert len(wire.ids) == 1
        assert seen(watched) == {}

    def test_links_keep_the_ids_that_celery_gives_them(self, app: Celery, watched: EffectOnce) -> None:
        work = app.task(name="w", once=Leased("w:{x}"))(noting([]))
        link = work.s(2)
        with patch.object(app.amqp, "send_task_message"):
            work.apply_async((1,), link=link)
        assert "task_id" not in link.options
        assert seen(watched) == {}

    def test_steps_and_fences_are_there_for_a_body_that_has_them(self, app: Celery, watched: EffectOnce) -> None:
        def body(x: int) -> list[Any]:
            effect = watched.effect
            effect.ensure_current()
            return [effect.step("add", lambda: x + 1), str(effect.idempotency_key("add")), effect.key]

        work = app.task(name="w", once=Leased("w:{x}"))(body)
        assert work.apply((1,)).get() == work.apply((1,)).get()


class TestOff:
    @pytest.fixture
    def engine(self, tmp_path: Path) -> Iterator[sa.Engine]:
        engine = sa.create_engine(f"sqlite:///{tmp_path / 'off.sqlite'}")
        with engine.begin() as connection:
            connection.exec_driver_sql("create table notes (x integer)")
        yield engine
        engine.dispose()

    def notes(self, engine: sa.Engine) -> list[int]:
        with engine.connect() as connection:
            return list(connection.exec_driver_sql("select x from notes order by x").scalars())

    def test_nothing_is_asked_and_nothing_is_written(self, app: Celery) -> None:
        once = EffectOnce(app, mode="off")
        notes: list[int] = []
        work = app.task(name="w", once=Leased("w:{x}"))(noting(notes))
        assert [work.apply((1,)).get() for _ in range(2)] == [1, 1]
        assert notes == [1, 1]
        assert not once._places.are_open

    def test_the_session_of_a_body_commits_with_it_and_goes_with_its_failure(
        self, app: Celery, engine: sa.Engine
    ) -> None:
        once = EffectOnce(app, ledger=engine, mode="off")

        def body(x: int, *, fails: bool = False) -> int:
            once.session.execute(sa.text("insert into notes values (:x)"), {"x": x})
            once.connection.execute(sa.text("insert into notes values (:x)"), {"x": x + 1})
            if fails:
                message = "it fails"
                raise ValueError(message)
            return x

        work = app.task(name="w", once=Transactional("w:{x}"))(body)
        work(1)
        with pytest.raises(ValueError, match="it fails"):
            work(3, fails=True)
        assert self.notes(engine) == [1, 2]
        with engine.connect() as connection:
            assert sa.inspect(connection).get_table_names() == ["notes"]

    def test_what_a_body_wrote_through_its_users_own_session_is_committed(self, app: Celery, engine: sa.Engine) -> None:
        registry = scoped_session(sessionmaker(engine))
        EffectOnce(app, ledger=registry, mode="off")

        def body(x: int) -> None:
            registry.execute(sa.text("insert into notes values (:x)"), {"x": x})

        work = app.task(name="w", once=Transactional("w:{x}"))(body)
        work(1)
        registry.remove()
        assert self.notes(engine) == [1]

    def test_once_outbox_sends_after_the_commit_and_stores_nothing(self, app: Celery, engine: sa.Engine) -> None:
        once = EffectOnce(app, ledger=engine, mode="off", create_schema=True)
        work = app.task(name="w", once=Leased("w:{x}"))(noting([]))
        queue = app.connection_for_read().channel()
        with Session(engine) as session, once.outbox(session):
            work.delay(1)
            assert _length(app) == 0
            session.commit()
        with once.outbox():
            work.delay(2)
        with Session(engine) as session, once.outbox(session):
            work.delay(3)
            session.rollback()
        queue.close()
        assert _length(app) == 2
        assert once.ledger.outbox.depth().ready == 0  # type: ignore[attr-defined]

    def test_a_far_eta_is_not_parked(self, app: Celery, engine: sa.Engine) -> None:
        once = EffectOnce(app, ledger=engine, mode="off", far_eta="park")
        assert once.far_etas.look("w", _Far()) is None


class TestOneTask:
    def test_what_the_policy_says_goes_before_the_setting(self, make_app: Callable[..., Celery]) -> None:
        ran: dict[tuple[str, str], int] = {}
        for setting in ("enforce", "observe", "off"):
            app = make_app()
            EffectOnce(app, ledger=f"memory://modes{next(_numbers)}", mode=setting)
            for own in ("enforce", "observe", "off"):
                notes: list[int] = []
                work = app.task(name=own, shared=False, once=Leased("w:{x}", mode=own))(noting(notes))
                for _ in range(2):
                    work.apply((1,)).get()
                ran[setting, own] = len(notes)
        assert ran == {(s, o): 1 if o == "enforce" else 2 for s, o in ran}

    def test_only_an_enforced_policy_changes_how_a_worker_acknowledges(self, make_app: Callable[..., Celery]) -> None:
        from effectonce.app.bootsteps import Checked  # noqa: PLC0415 - the worker's own step, beside its only use

        acks = {}
        for mode in ("enforce", "observe", "off"):
            app = make_app()
            EffectOnce(app, ledger=f"memory://modes{next(_numbers)}", mode=mode)
            plain = app.task(name="plain", shared=False, once=Leased("w:{x}"))(noting([]))
            own = app.task(name="own", shared=False, once=Leased("w:{x}"), acks_late=True)(noting([]))
            Checked.create(Checked.__new__(Checked), type("Worker", (), {"app": app, "pool_cls": TaskPool}))
            acks[mode] = [bool(plain.acks_late), bool(plain.reject_on_worker_lost), bool(own.acks_late)]
        assert acks == {"enforce": [True] * 3, "observe": [False, False, True], "off": [False, False, True]}


class TestBypassed:
    def test_a_body_runs_without_a_store_and_with_the_tests_session(self, app: Celery) -> None:
        once = EffectOnce(app, ledger="postgresql+psycopg://nobody@127.0.0.1:1/nothing")
        session = object()

        def body(x: int) -> list[Any]:
            return [once.session is session, once.effect.key, once.effect.fence]

        work = app.task(name="w", once=Transactional("w:{x}"))(body)
        with once.bypassed(session=session):
            assert [work(1), work(1)] == [[True, "w:1", 0]] * 2
        with pytest.raises(LedgerUnavailable):
            work(1)

    def test_without_a_session_a_body_that_wants_one_is_told(self, app: Celery) -> None:
        once = EffectOnce(app, ledger="memory://never-opened")

        def body(x: int) -> Any:
            return once.session

        work = app.task(name="w", once=Transactional("w:{x}"))(body)
        with once.bypassed(), pytest.raises(OutsideEffect, match="bypassed"):
            work(1)

    def test_natural_and_unique_bodies_run_too(self, app: Celery) -> None:
        once = EffectOnce(app, ledger="memory://never-opened")
        work = [app.task(name=str(at), once=each)(noting([])) for at, each in enumerate((Natural(), Unique("u:{x}")))]
        with once.bypassed():
            assert [each(3) for each in work] == [3, 3]


class _Far:
    headers = {"task": "w", "eta": "2999-01-01T00:00:00+00:00"}  # noqa: RUF012 - a message as the seam sees it
    body: tuple[Any, ...] = ((), {}, {})


def _length(app: Celery) -> int:
    with app.connection_for_read() as connection:
        return int(connection.default_channel.queue_declare(app.conf.task_default_queue, passive=False).message_count)
