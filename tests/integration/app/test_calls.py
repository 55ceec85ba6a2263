"""What a call brings along, and what becomes of one that may not run."""

import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from celery import Celery, Task, chain, chord, group
from celery.app.trace import build_tracer
from celery.exceptions import Ignore, SoftTimeLimitExceeded

from effectonce import (
    MESSAGE,
    EffectBusy,
    EffectDuplicate,
    EffectKeyReused,
    EffectOnce,
    EffectOnceError,
    KeyInvalid,
    KeyMissing,
    Leased,
    LedgerUnsuitable,
    OutsideEffect,
    ResultNotEncodable,
    ResultNotKept,
    Transactional,
    effect,
)
from effectonce.app.frames import current_frame
from effectonce.domain.claims import Granted


def nothing() -> None: ...


def same(x: int) -> int:
    return x


def noting(seen: list[int]) -> Callable[[int], None]:
    def note(x: int) -> None:
        seen.append(x)

    return note


class Sent:
    """Collects what the app would publish."""

    def __init__(self, app: Celery) -> None:
        self.messages: list[Any] = []
        sender = app.amqp.__dict__["send_task_message"]
        cell = next(c.cell_contents for c in sender.__closure__ if isinstance(c.cell_contents, list))
        cell[:] = [self.take]

    def take(self, _producer: Any, name: str, message: Any, **options: Any) -> None:
        headers = {**message.headers, **(options.get("headers") or {})}
        self.messages.append((name, headers, message, options))

    @property
    def headers(self) -> dict[str, Any]:
        return dict(self.messages[-1][1])


@pytest.fixture
def sent(app: Celery, once: EffectOnce) -> Sent:
    return Sent(app)


def test_a_key_at_the_call_travels_as_a_header_and_names_the_effect(app: Celery, once: EffectOnce, sent: Sent) -> None:
    @app.task
    def free() -> None: ...

    @app.task(once=Leased())
    def work() -> None: ...

    work.apply_async(effect_key="order-1")
    assert sent.headers["effectonce_key"] == "order-1"
    _, _, message, options = sent.messages[-1]
    assert "effect_key" not in options
    assert "effect_key" not in message.properties


def test_a_key_at_the_call_of_a_task_with_a_template_is_refused(app: Celery, once: EffectOnce, sent: Sent) -> None:
    work = app.task(name="w", once=Leased("k:{x}"))(same)
    with pytest.raises(KeyInvalid, match="key_at_call"):
        work.apply_async((1,), effect_key="mine")
    free = app.task(name="f", once=Leased("k:{x}", key_at_call=True))(same)
    free.apply_async((1,), effect_key="mine")
    assert sent.headers["effectonce_key"] == "mine"


def test_a_key_for_a_whole_canvas_is_refused(app: Celery, once: EffectOnce, sent: Sent) -> None:
    work = app.task(name="w", once=Leased())(nothing)
    for whole in (group([work.si(), work.si()]), chain(work.si(), work.si()), chord([work.si()], work.si())):
        with pytest.raises(KeyInvalid, match="as a whole"):
            whole.apply_async(effect_key="all")
    assert sent.messages == []


def test_a_task_without_any_key_says_so(app: Celery, once: EffectOnce) -> None:
    work = app.task(name="w", once=Leased())(nothing)
    with pytest.raises(KeyMissing, match="'w'"):
        work()


def test_a_named_generation_runs_once_more_and_is_repeatable(app: Celery, once: EffectOnce) -> None:
    """A67."""
    seen: list[int] = []
    work = app.task(name="w", once=Leased("k:{x}"))(noting(seen))
    for again in (None, None, "backfill", "backfill", "second"):
        headers = {"effectonce_again": again} if again else {}
        work.apply((1,), headers=headers).get()
    assert seen == [1, 1, 1]


def test_the_message_as_key_notices_a_redelivery_and_no_repeat(app: Celery, once: EffectOnce) -> None:
    seen: list[int] = []
    work = app.task(name="w", once=Leased(MESSAGE))(noting(seen))
    for task_id in ("a", "a", "b"):
        work.apply((1,), task_id=task_id).get()
    assert seen == [1, 1]


def test_namespaces_keep_tenants_apart(make_app: Callable[..., Celery]) -> None:
    app = make_app()
    seen: list[int] = []
    EffectOnce(app, ledger="memory://tenants", namespace=lambda _task, request: (request.headers or {})["tenant"])
    work = app.task(name="w", once=Leased("k:{x}"))(noting(seen))
    for tenant in ("a", "b", "a"):
        work.apply((1,), headers={"tenant": tenant}).get()
    assert seen == [1, 1]


def test_links_get_ids_that_a_second_dispatch_repeats(app: Celery, once: EffectOnce, sent: Sent) -> None:
    plain = app.task(name="p")(same)
    work = app.task(name="w", once=Leased("k:{x}"))(same)
    link = plain.s()
    for _ in range(2):
        work.apply_async((1,), link=link, task_id="parent")
    ids = [message.body[2]["callbacks"][0]["options"]["task_id"] for _, _, message, _ in sent.messages]
    assert ids[0] == ids[1]
    assert "task_id" not in link.options
    work.apply_async((1,), link=link, task_id="other")
    assert sent.messages[-1][2].body[2]["callbacks"][0]["options"]["task_id"] != ids[0]


def test_a_child_without_a_key_is_named_by_its_parent_and_its_place(app: Celery, once: EffectOnce, sent: Sent) -> None:
    """A20."""
    child = app.task(name="c", once=Leased())(same)

    @app.task(once=Leased("k:{x}", remember=()))
    def parent(x: int, fail: bool) -> None:
        child.delay(1)
        child.delay(1)
        if fail:
            raise ValueError("asked to fail")

    with pytest.raises(ValueError, match="asked to fail"):
        parent.apply((1, True), throw=True)
    parent.apply((1, True)).state  # noqa: B018
    names = [headers["effectonce_parent"] for _, headers, _, _ in sent.messages]
    assert names[0] != names[1]
    assert names[:2] == names[2:]


def test_a_direct_call_waits_and_then_says_busy(app: Celery, once: EffectOnce) -> None:
    """The lease of these tests is half a second; the holder renews it for as long as it runs."""
    inside, leave = threading.Event(), threading.Event()

    @app.task(once=Leased("k:{x}"))
    def work(x: int) -> str:
        inside.set()
        leave.wait(10)
        return "first"

    first = threading.Thread(target=work, args=(1,))
    first.start()
    inside.wait(5)
    with pytest.raises(EffectBusy, match="k:1"):
        work(1)
    leave.set()
    first.join()
    assert work(1) == "first"


def test_a_direct_call_that_waits_gets_the_first_ones_result(app: Celery, once: EffectOnce) -> None:
    inside, leave = threading.Event(), threading.Event()

    @app.task(once=Leased("k:{x}", lease=5))
    def work(x: int) -> str:
        inside.set()
        leave.wait(10)
        return "first"

    app.finalize()  # a lazy task that three threads touch first is Celery's own race
    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(work(1))) for _ in range(3)]
    for thread in threads:
        thread.start()
    inside.wait(5)
    leave.set()
    for thread in threads:
        thread.join()
    assert results == ["first"] * 3


def test_on_duplicate_raise_says_so_and_runs_nothing(app: Celery, once: EffectOnce) -> None:
    seen: list[int] = []
    work = app.task(name="w", once=Leased("k:{x}", on_duplicate="raise"))(noting(seen))
    work(1)
    with pytest.raises(EffectDuplicate, match="k:1"):
        work(1)
    assert seen == [1]


def test_a_reused_key_names_what_differs_and_starts_no_retry(app: Celery, once: EffectOnce) -> None:
    seen = []

    @app.task(once=Leased("k:{x}"), autoretry_for=(Exception,), default_retry_delay=0)
    def work(x: int, amount: int, secret: str) -> None:
        seen.append(amount)

    work.apply((1, 100, "hush")).get()
    result = work.apply((1, 987654321, "hush"))
    assert isinstance(result.result, EffectKeyReused)
    assert "differs: amount" in str(result.result)
    assert "hush" not in str(result.result)
    assert "987654321" not in str(result.result)
    assert seen == [100]


def test_errors_come_through_pickle_and_the_result_path(app: Celery, once: EffectOnce) -> None:
    work = app.task(name="w", once=Leased())(nothing)
    with pytest.raises(KeyMissing) as caught:
        work()
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301
    stored = app.backend.prepare_exception(caught.value, serializer="json")
    assert str(app.backend.exception_to_python(stored)) == str(caught.value)


def test_every_error_class_survives_the_result_path(app: Celery) -> None:
    import effectonce.errors as errors  # noqa: PLC0415, PLR0402

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, EffectOnceError)]
    assert len(kinds) > 15
    for kind in kinds:
        facts: dict[str, Any] = {"task": "t", "key": "k", "wait": 1.0, "seconds": 1.0, "timeout": 1.0, "received": "ab"}
        error = kind(**facts, message_id="m", differ=["x"], faults=["f"])
        again = app.backend.exception_to_python(app.backend.prepare_exception(error, serializer="json"))
        assert (type(again), str(again)) == (kind, str(error))


def test_a_transactional_policy_on_a_ledger_without_transactions_is_refused(app: Celery, once: EffectOnce) -> None:
    work = app.task(name="w", once=Transactional("k:{x}"))(same)
    with pytest.raises(LedgerUnsuitable, match="Leased"):
        work(1)


def test_the_face_outside_a_body_says_so(once: EffectOnce) -> None:
    for use in (lambda: effect.key, lambda: once.effect, lambda: once.session, lambda: once.connection):
        with pytest.raises(OutsideEffect):
            use()


def test_a_session_in_a_leased_body_says_so(app: Celery, once: EffectOnce) -> None:
    @app.task(once=Leased("k:{x}"))
    def work(x: int) -> None:
        _ = once.session

    with pytest.raises(OutsideEffect):
        work(1)


def test_a_body_that_calls_for_its_own_key_is_refused_at_once(app: Celery, once: EffectOnce) -> None:
    @app.task(once=Leased("k:{x}", lease=60))
    def work(x: int) -> int:
        return int(work(x))

    with pytest.raises(EffectBusy, match="k:1"):
        work(1)


def test_what_steers_the_worker_is_never_remembered_as_a_failure(app: Celery, once: EffectOnce) -> None:
    seen = []

    @app.task(bind=True, once=Leased("k:{x}", remember=(Exception,)), max_retries=3)
    def work(self: Any, x: int) -> str:
        seen.append(self.request.retries)
        if self.request.retries < 2:
            raise self.retry(countdown=0)
        return "done"

    assert work.apply((1,)).get() == "done"
    assert seen == [0, 1, 2]


def test_a_leased_result_that_cannot_be_encoded_does_not_repeat_the_effect(app: Celery, once: EffectOnce) -> None:
    seen = []

    @app.task(once=Leased("k:{x}"), autoretry_for=(Exception,), default_retry_delay=0)
    def work(x: int) -> object:
        seen.append(x)
        return object()

    for error in (ResultNotEncodable, ResultNotKept):
        assert isinstance(work.apply((1,)).result, error)
    assert seen == [1]


def test_a_soft_time_limit_after_the_effect_is_settled_is_not_a_failure(app: Celery, once: EffectOnce) -> None:
    class Slow(Task):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            super().__call__(*args, **kwargs)
            raise SoftTimeLimitExceeded

    @app.task(base=Slow, once=Leased("k:{x}"))
    def work(x: int) -> int:
        return x + 1

    assert work.apply((1,)).get() == 2


def test_two_extensions_in_one_process_keep_their_ledgers_apart(
    make_app: Callable[..., Celery], sqlite_url: str
) -> None:
    one, other = make_app(), make_app()
    first = EffectOnce(one, ledger=sqlite_url)
    second = EffectOnce(other, ledger="memory://other-extension")

    @other.task(name="inner", once=Leased("inner:{x}"))
    def inner(x: int) -> int:
        return x

    @one.task(name="outer", once=Transactional("outer:{x}"))
    def outer(x: int) -> int:
        return int(inner(x))

    assert outer(1) == 1
    assert [entry.key for entry in second.ledger.entries(state=None, limit=10)] == ["inner:1"]
    assert [entry.key for entry in first.ledger.entries(state=None, limit=10)] == ["outer:1"]


@pytest.mark.parametrize("how", ["fails", "ignores"])
def test_a_fenced_holder_puts_its_delivery_off_however_its_body_ends(app: Celery, once: EffectOnce, how: str) -> None:
    """Another attempt takes the key over while the body runs; a bare acknowledgement could remove its message."""

    @app.task(once=Leased("k:{x}", lease=0.05))
    def work(x: int) -> None:
        frame = current_frame()
        assert frame is not None
        taken = replace(frame.claim, attempt=b"another.", reenter=frame.attempt.fence)
        assert isinstance(once.ledger.claim(taken), Granted)
        raise Ignore if how == "ignores" else ValueError(x)

    app.finalize()
    copies: list[Any] = []
    with patch("effectonce.app.endings.put_off", lambda *_args, **facts: copies.append(facts)):
        tracer = build_tracer(work.name, app.tasks[work.name], app=app)
        request = {"id": "m1", "delivery_info": {}, "ignore_result": True}
        outcome = tracer("m1", (1,), {}, request)
    assert outcome.info.state == "IGNORED"
    assert len(copies) == 1


def test_a_child_that_is_sent_eagerly_is_named_by_the_body_that_sends_it(app: Celery, once: EffectOnce) -> None:
    """As one that crosses the wire; its eager retry keeps the name."""
    seen = list[tuple[int, int]]()
    app.conf.task_always_eager = True

    @app.task(name="piece", bind=True, once=Leased())
    def piece(self: Any, x: int) -> None:
        seen.append((x, self.request.retries))
        if x == 1 and not self.request.retries:
            raise self.retry(countdown=0)

    @app.task(name="whole", once=Leased("whole:{day}"))
    def whole(day: str) -> None:
        for x in (1, 2):
            piece.delay(x)

    whole("monday")
    assert seen == [(1, 0), (1, 1), (2, 0)]
    names = [entry.key for entry in once.ledger.entries(state=None, limit=9)]
    assert len([name for name in names if name.startswith("piece parent=")]) == 2
