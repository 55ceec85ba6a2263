"""Steps as a body sees them; calls stay in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from effectonce import (
    Done,
    EffectHeld,
    EffectOnce,
    Exclusive,
    FenceRefused,
    Leased,
    Natural,
    NotDone,
    StepInvalid,
    Transactional,
    Unknown,
    effect,
)
from effectonce.domain.claims import State
from effectonce.stores.memory import MemoryLedger


class Outside:
    """Notes what was done; fails while there are *errors*."""

    def __init__(self, *errors: Exception) -> None:
        self.done: list[Any] = []
        self.errors = list(errors)

    def act(self, what: Any) -> Any:
        self.done.append(what)
        if self.errors:
            raise self.errors.pop(0)
        return what


def make(app: Celery, outside: Outside, *, options: Any = None, key: Any = "work:{x}", **policy: Any) -> Any:
    """A task with one step, which can fail after it."""

    @app.task(once=Leased(key, **policy), name="work")
    def work(x: int, fails: Callable[[], None] | None = None) -> Any:
        made = effect.options(**options) if options else effect
        answer = made.step("pay", outside.act, x)
        if fails is not None:
            fails()
        return answer

    return work


def kind_of(x: Any) -> str:
    """A key for what is no key itself."""
    return type(x).__name__


def once_only() -> Callable[[], None]:
    """Raise at the first call."""
    errors = [ValueError("after the step")]

    def fail() -> None:
        if errors:
            raise errors.pop()

    return fail


def test_a_finished_step_is_not_run_again_after_a_failure(app: Celery, once: EffectOnce) -> None:
    outside, fails = Outside(), once_only()
    work = make(app, outside, fingerprint=("x",))
    with pytest.raises(ValueError, match="after"):
        work(7, fails)
    assert work(7, fails) == 7
    assert outside.done == [7]


def test_a_body_gets_in_its_first_attempt_what_it_would_get_in_a_later_one(app: Celery, once: EffectOnce) -> None:
    """A tuple is a list after the serializer."""
    work = make(app, Outside())
    assert work((1, 2)) == [1, 2]
    assert work([3]) == [3]


def test_a_step_without_a_result_answers_none_both_times(app: Celery, once: EffectOnce) -> None:
    seen: list[Any] = []
    fails = once_only()

    @app.task(once=Leased("work:{x}", fingerprint=("x",)))
    def work(x: int) -> None:
        seen.append(effect.step("nothing", lambda: None))
        fails()

    with pytest.raises(ValueError, match="after"):
        work(1)
    work(1)
    assert seen == [None, None]


def test_keywords_reach_the_call(app: Celery, once: EffectOnce) -> None:
    @app.task(once=Leased("work:{x}"))
    def work(x: int) -> Any:
        return effect.step("mail", "{} {to}".format, x, to="Anna")

    assert work(1) == "1 Anna"


def test_a_name_is_one_step_in_an_attempt(app: Celery, once: EffectOnce) -> None:
    @app.task(once=Leased("work:{x}"))
    def work(x: int) -> None:
        for one in range(x):
            effect.step("mail", str, one)

    work(1)
    with pytest.raises(StepInvalid, match="put what differs into the name"):
        work(2)


@pytest.mark.parametrize("name", ["", "x" * 201, 7, None])
def test_a_step_has_a_name(app: Celery, once: EffectOnce, name: Any) -> None:
    @app.task(once=Leased("work:{x}"))
    def work(x: int) -> None:
        effect.step(name, str, x)

    with pytest.raises(StepInvalid, match="1 to 200 characters"):
        work(1)


def test_a_result_that_cannot_be_kept_is_refused_at_once_and_the_step_is_done(app: Celery, once: EffectOnce) -> None:
    outside = Outside()
    work = make(app, outside, key=kind_of, fingerprint=None)
    for _ in range(2):
        with pytest.raises(StepInvalid, match="plain values"):
            work(object())
    assert len(outside.done) == 1


def test_a_transactional_body_has_no_steps(app: Celery, tmp_path: Path) -> None:
    EffectOnce(app, ledger=f"sqlite:///{tmp_path / 'effects.sqlite'}")

    @app.task(once=Transactional("work:{x}"))
    def work(x: int) -> None:
        effect.step("pay", str, x)

    with pytest.raises(StepInvalid, match="Transactional"):
        work(1)


@pytest.mark.parametrize("policy", [Exclusive("work:{x}"), Natural("work:{x}")])
def test_a_body_that_is_run_again_as_a_matter_of_course_has_no_steps(
    app: Celery, once: EffectOnce, policy: Exclusive | Natural
) -> None:
    @app.task(once=policy)
    def work(x: int) -> None:
        effect.step("pay", str, x)

    with pytest.raises(StepInvalid, match="has no steps"):
        work(1)


@pytest.mark.parametrize("options", [{"on_unknown": "later"}, {"not_done": ValueError}, {"not_done": (1,)}])
def test_bad_options_are_refused(app: Celery, once: EffectOnce, options: Any) -> None:
    outside = Outside()
    with pytest.raises(StepInvalid, match="must be"):
        make(app, outside, options=options)(1)
    assert outside.done == []


def test_a_step_that_raised_runs_again_where_the_task_retries(app: Celery, once: EffectOnce) -> None:
    outside = Outside(TimeoutError())
    work = make(app, outside)
    with pytest.raises(TimeoutError):
        work(1)
    assert work(1) == 1
    assert outside.done == [1, 1]


def test_a_step_that_raised_is_done_where_the_task_skips(app: Celery, once: EffectOnce) -> None:
    outside = Outside(TimeoutError())
    work = make(app, outside, on_unknown="skip")
    with pytest.raises(TimeoutError):
        work(1)
    assert work(1) is None
    assert outside.done == [1]


def test_a_step_that_raised_is_held_where_the_task_says_so(app: Celery, once: EffectOnce) -> None:
    outside = Outside(TimeoutError())
    work = make(app, outside, on_unknown="hold")
    with pytest.raises(EffectHeld) as held:
        work(1)
    assert isinstance(held.value.__cause__, TimeoutError)
    with pytest.raises(EffectHeld):
        work(1)
    (entry,) = once.ledger.find("work:1")
    assert (entry.state, outside.done) == (State.UNKNOWN, [1])


def test_an_error_that_is_listed_did_nothing(app: Celery, once: EffectOnce) -> None:
    outside = Outside(ConnectionRefusedError())
    work = make(app, outside, on_unknown="hold", options={"not_done": (ConnectionRefusedError,)})
    with pytest.raises(ConnectionRefusedError):
        work(1)
    assert work(1) == 1


def test_an_error_that_is_remembered_is_an_outcome_of_a_step_too(app: Celery, once: EffectOnce) -> None:
    outside = Outside(ValueError("card refused"))
    work = make(app, outside, on_unknown="hold", remember=(ValueError,))
    for _ in range(2):
        with pytest.raises(ValueError, match="refused"):
            work(1)
    assert outside.done == [1]


def test_a_body_without_steps_that_raised_is_held(app: Celery, once: EffectOnce) -> None:
    @app.task(once=Leased("work:{x}", on_unknown="hold"))
    def work(x: int) -> None:
        raise TimeoutError

    with pytest.raises(EffectHeld):
        work(1)


def test_a_body_that_raised_after_its_steps_is_a_failure_like_any(app: Celery, once: EffectOnce) -> None:
    fails, outside = once_only(), Outside()
    work = make(app, outside, on_unknown="hold", fingerprint=("x",))
    with pytest.raises(ValueError, match="after"):
        work(1, fails)
    assert work(1, fails) == 1
    assert outside.done == [1]


@pytest.mark.parametrize(
    ("answer", "acts"), [(Done(5), 1), (NotDone, 2), (NotDone(), 2)], ids=["done", "not done", "not done, called"]
)
def test_the_outside_is_asked_about_a_step_that_raised(app: Celery, once: EffectOnce, answer: Any, acts: int) -> None:
    outside, asked = Outside(TimeoutError()), []

    def reconcile(about: Any, step: Any) -> Any:
        asked.append((about.key, step.name, about.idempotency_key(step.name)))
        return answer

    work = make(app, outside, on_unknown="hold", reconcile=reconcile)
    if acts == 2:
        with pytest.raises(TimeoutError):
            work(1)
        assert work(1) == 1
    else:
        assert work(1) == 5
    assert len(outside.done) == acts
    assert {key for key, _, _ in asked} == {"work:1"}


@pytest.mark.parametrize("said", [Unknown, Unknown(), None, "yes", ZeroDivisionError("down")])
def test_an_outside_that_cannot_say_leaves_it_to_a_person(app: Celery, once: EffectOnce, said: Any) -> None:
    def reconcile(_effect: Any, _step: Any) -> Any:
        if isinstance(said, Exception):
            raise said
        return said

    work = make(app, Outside(TimeoutError()), on_unknown="hold", reconcile=reconcile)
    with pytest.raises(EffectHeld):
        work(1)


def test_a_takeover_of_a_body_without_steps_asks_the_outside_about_the_whole(app: Celery, once: EffectOnce) -> None:
    asked: list[Any] = []

    def reconcile(_effect: Any, step: Any) -> Any:
        asked.append(step)
        return Done("it had been done")

    ran: list[int] = []

    @app.task(once=Leased("work:{x}", on_unknown="hold", reconcile=reconcile, lease=0.2))
    def work(x: int) -> str:
        ran.append(x)
        raise KeyboardInterrupt

    ledger = once.ledger
    assert isinstance(ledger, MemoryLedger)
    ledger.release = lambda *_, **__: True  # type: ignore[method-assign]
    ledger.mark_unknown = lambda *_: None  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        work(1)
    assert work(1) == "it had been done"
    assert (ran, asked) == ([1], [None])


def test_a_holder_that_lost_its_claim_begins_no_step(app: Celery, once: EffectOnce) -> None:
    outside = Outside()

    @app.task(once=Leased("work:{x}", lease=0.1))
    def work(x: int) -> None:
        held = once.ledger.find("work:1")[0]
        once.ledger.mark_unknown(held.digest, held.attempt)
        with pytest.raises(FenceRefused):
            effect.ensure_current() if x == 2 else effect.step("pay", outside.act, x)

    with pytest.raises(Exception, match="being carried out"):
        work(1)
    assert outside.done == []
