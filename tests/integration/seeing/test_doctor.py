"""The doctor: each check finds its fault on a system that has it, and is silent on a good one."""

import itertools
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import sqlalchemy as sa
from celery import Celery, _state
from celery.app.trace import reset_worker_optimizations
from celery.contrib.testing.worker import TestWorkController
from celery.worker import state
from click.testing import CliRunner
from kombu.entity import Exchange, Queue

from effectonce import EffectOnce, Leased, Transactional
from effectonce.app.doctor import CHECKS, NOT_ASKED, Finding, examine
from effectonce.app.doctor.findings import Check, Severity
from effectonce.cli.once import once as commands
from effectonce.domain.claims import Granted
from effectonce.ports.history import Happened
from effectonce.testing.conformance.scene import new_claim
from tests.integration.seeing.messages import message
from tests.services import Fleet

PAGES = Path(__file__).parents[3] / "docs" / "reference" / "doctor"
SECOND = 1_000_000
_numbers = itertools.count()

Make = Callable[..., EffectOnce]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Make a system: an app with one task, its broker and its ledger."""
    made: list[EffectOnce] = []

    def make(
        broker: str = "memory://",
        ledger: Any = None,
        *,
        conf: Any = (),
        task: Any = (),
        policy: Any = None,
        **settings: Any,
    ) -> EffectOnce:
        number = next(_numbers)
        app = Celery(f"patient{number}", broker=broker, backend="cache+memory://", set_as_current=False)
        app.conf.update({"task_time_limit": 60, **dict(conf)})
        once = EffectOnce(app, ledger=ledger or f"sqlite:///{tmp_path / f'{number}.sqlite'}", **settings)

        @app.task(name="pay", shared=False, once=Leased("pay:{order}"), **dict(task))
        def pay(order: str) -> str:
            return order

        once.ledger.create_schema()
        made.append(once)
        return once

    yield make
    for once in made:
        once.ledger.close()
        once.app.close()


def ask(once: EffectOnce, code: str) -> list[Finding]:
    return examine(once, wait=0.05, only=[code])


def execute(once: EffectOnce, statement: str) -> None:
    with once.ledger.source.engine.begin() as connection:  # type: ignore[attr-defined]
        connection.execute(sa.text(statement))


def test_a_broker_that_repeats_what_still_runs(make: Make, redis_url: str) -> None:
    short = {"broker_transport_options": {"visibility_timeout": 30}}
    code = "visibility-shorter-than-task"
    (found,) = ask(make(redis_url, conf=short, renew_visibility=False), code)
    assert (found.facts["visibility_timeout"], found.facts["time_limit"]) == (30, 60)
    assert ask(make(redis_url, conf=short), code) == []
    assert ask(make(redis_url, conf={**short, "task_time_limit": 20}, renew_visibility=False), code) == []


def test_messages_that_nobody_holds(make: Make, redis_url: str) -> None:
    once = make(redis_url)
    assert ask(once, "unacked-without-holder") == []
    with redis.Redis.from_url(redis_url) as client:
        client.zadd("unacked_index", {"tag": time.time() - 7200})
    (found,) = ask(once, "unacked-without-holder")
    assert (found.facts["messages"], found.facts["oldest_seconds"] >= 7199) == (1, True)


def test_a_task_longer_than_rabbitmqs_patience(make: Make) -> None:
    code = "beyond-consumer-timeout"
    (found,) = ask(make("amqp://nowhere//", conf={"task_time_limit": None}), code)
    assert found.facts["time_limit"] == "none"
    assert ask(make("amqp://nowhere//"), code) == []
    queue = Queue("q", Exchange("q"), queue_arguments={"x-consumer-timeout": 30_000})
    assert len(ask(make("amqp://nowhere//", conf={"task_queues": [queue]}), code)) == 1


def test_a_quorum_queue_that_drops_before_poison(make: Make) -> None:
    def queue(**more: Any) -> dict[str, Any]:
        arguments = {"x-queue-type": "quorum", **more}
        return {"task_queues": [Queue("q", Exchange("q"), queue_arguments=arguments)]}

    code = "delivery-limit-too-low"
    assert len(ask(make("amqp://nowhere//", conf=queue(**{"x-delivery-limit": 3})), code)) == 1
    assert ask(make("amqp://nowhere//", conf=queue(**{"x-delivery-limit": 9})), code) == []


def test_entries_that_are_forgotten_too_early(make: Make, redis_url: str) -> None:
    (found,) = ask(make(redis_url, keep_seconds=600.0), "keep-below-horizon")
    assert found.facts["horizon_seconds"] > 3600
    assert ask(make(redis_url), "keep-below-horizon") == []


def test_results_that_cannot_be_stored(make: Make) -> None:
    wrong = {"result_serializer": "pickle", "accept_content": ["json"]}
    (found,) = ask(make(conf=wrong), "no-result-serializer")
    assert found.facts["result_serializer"] == "pickle"
    assert ask(make(), "no-result-serializer") == []


def test_an_index_that_is_missing(make: Make, postgresql_url: str) -> None:
    once = make(ledger=postgresql_url)
    assert ask(once, "missing-index") == []
    execute(once, "drop index effectonce_claimed")
    (found,) = ask(once, "missing-index")
    assert found.facts["missing"] == "effectonce_entries.effectonce_claimed"


def test_a_clock_that_is_wrong(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    once = make()
    assert ask(once, "clock-skew") == []
    real = time.time
    monkeypatch.setattr("effectonce.app.doctor.patient.time.time", lambda: real() + 60)
    (found,) = ask(once, "clock-skew")
    assert found.facts["where"] == "this machine"


def test_a_ledger_in_the_brokers_own_redis(make: Make, redis_url: str) -> None:
    assert len(ask(make(redis_url, redis_url), "ledger-in-broker")) == 1
    assert ask(make("memory://", redis_url), "ledger-in-broker") == []


def test_a_redis_that_evicts_or_forgets(make: Make, redis_url: str) -> None:
    once = make("memory://", redis_url)
    with redis.Redis.from_url(redis_url) as client:
        before = {**client.config_get("maxmemory*"), **client.config_get("appendonly"), **client.config_get("save")}
        try:
            client.config_set("appendonly", "yes")
            assert ask(once, "ledger-evicts") == ask(once, "ledger-not-persistent") == []
            client.config_set("maxmemory", "100mb")
            client.config_set("maxmemory-policy", "allkeys-lru")
            client.config_set("appendonly", "no")
            client.config_set("save", "")
            assert len(ask(once, "ledger-evicts")) == len(ask(once, "ledger-not-persistent")) == 1
        finally:
            for name in ("maxmemory", "maxmemory-policy", "appendonly", "save"):
                client.config_set(name, before[name])


def test_prepared_statements_through_a_pooler(make: Make, pgbouncer_url: str, postgresql_url: str) -> None:
    code = "pooler-breaks-prepared-statements"
    given = sa.create_engine(pgbouncer_url, connect_args={"prepare_threshold": 5})
    assert len(ask(make(ledger=given), code)) == 1
    assert ask(make(ledger=pgbouncer_url), code) == []
    assert ask(make(ledger=postgresql_url), code) == []
    given.dispose()


def test_relays_that_cannot_listen(make: Make, pgbouncer_url: str, postgresql_url: str) -> None:
    assert len(ask(make(ledger=pgbouncer_url), "pooler-cannot-listen")) == 1
    assert ask(make(ledger=pgbouncer_url, direct_url=postgresql_url), "pooler-cannot-listen") == []


def test_a_ledger_that_does_not_answer_is_all_that_is_told_of_it(make: Make, tmp_path: Path) -> None:
    once = make()
    assert ask(once, "ledger-unreachable") == []
    execute(once, "drop table effectonce_meta")
    found = examine(once, wait=0.05)
    assert "ledger-unreachable" in {each.code for each in found}
    assert NOT_ASKED not in {each.code for each in found}


def test_a_guarded_task_with_early_acknowledgement(make: Make) -> None:
    (found,) = ask(make(task={"acks_late": False}), "early-ack")
    assert dict(found.facts) == {"task": "pay", "acks_late": False}
    assert ask(make(), "early-ack") == []


def test_effects_that_wait_for_a_person(make: Make) -> None:
    once = make()
    assert ask(once, "effects-held") == []
    held = once.ledger.claim(new_claim())
    assert isinstance(held, Granted)
    once.ledger.mark_unknown(held.digest, held.attempt)
    (found,) = ask(once, "effects-held")
    assert (found.facts["unknown"], found.facts["poisoned"]) == (1, 0)


def test_messages_that_do_not_go_out(make: Make) -> None:
    once = make()
    assert ask(once, "outbox-late") == []
    once.outbox_store().store([message("pay")])
    execute(once, f"update effectonce_outbox set since = since - {600 * SECOND}, due = due - {600 * SECOND}")
    (found,) = ask(once, "outbox-late")
    assert found.facts["oldest_seconds"] >= 500


def test_two_beats_are_seen_by_what_they_do(make: Make) -> None:
    once = make()
    assert ask(once, "two-beats") == []
    row = Happened(digest=b"d" * 16, name="effect.replayed", cause="beat")
    once.ledger.history.record([row], {("effect.replayed", "beat"): 1})  # type: ignore[attr-defined]
    assert len(ask(once, "two-beats")) == 1


def test_a_tick_that_nobody_has_sent(make: Make) -> None:
    once = make()
    assert ask(once, "ticks-late") == []
    _beat(once, ended=300)
    (found,) = ask(once, "ticks-late")
    assert found.facts["entry"] == "nightly"


def _beat(once: EffectOnce, *, ended: int) -> None:
    """A beat that sent a tick every minute, and died *ended* seconds ago."""
    from effectonce.domain.ticks import Tick, TickClaim, TickState  # noqa: PLC0415 - beside its only use

    schedule = once.ledger.schedule  # type: ignore[attr-defined]
    term = schedule.win("beat", holder=b"h" * 16, who="here:1", length=30.0)
    last = round((time.time() - ended) * SECOND)
    claim = TickClaim(
        tick=Tick(group="beat", name="nightly", instant=last), state=TickState.CLAIMED, following=last + 60 * SECOND
    )
    schedule.claim_ticks(term, [claim])
    schedule.resign(term)


class Crew(TestWorkController):
    """A worker in a thread; all of a process end together, since Celery has one flag for them."""

    def begin(self) -> threading.Thread:
        thread = threading.Thread(target=self.start, daemon=True)
        thread.start()
        self.ensure_started()
        return thread


@pytest.fixture(scope="module")
def crew(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EffectOnce]:
    """Three workers on one broker: two that are set up differently, one without a guard; one holds a far eta."""
    url = str(fleet.redis().fresh_url())
    ledger = f"sqlite:///{tmp_path_factory.mktemp('crew') / 'ledger.sqlite'}"
    before = (_state.default_app, _state._tls.current_app)
    apps = [Celery("crew", broker=url, backend="cache+memory://", set_as_current=False) for _ in range(3)]
    threads = []
    for app, lease in zip(apps, (60.0, 30.0, None), strict=True):
        app.conf.update(broker_transport_options={"visibility_timeout": 30}, task_default_queue=f"q{lease}")
        if lease is not None:
            EffectOnce(app, ledger=ledger, lease_seconds=lease, renew_visibility=False, relay=False)

        @app.task(name="pay", shared=False, **({} if lease is None else {"once": Transactional("pay:{order}")}))
        def pay(order: str) -> str:
            return order

        quiet = {"without_heartbeat": True, "without_mingle": True, "without_gossip": True, "ready_callback": None}
        app.finalize()
        threads.append(Crew(app=app, pool="solo", concurrency=1, hostname=f"w{lease}@here", **quiet).begin())
    _state._set_task_join_will_block(False)  # noqa: FBT003 - Celery's own
    apps[0].tasks["pay"].apply_async(("A",), countdown=900)
    yield apps[0].effectonce
    state.should_terminate = 0
    for thread in threads:
        thread.join(3)
    state.should_terminate = None
    _state._set_task_join_will_block(False)  # noqa: FBT003 - Celery's own
    reset_worker_optimizations(apps[0])
    _state.default_app, _state._tls.current_app = before
    apps[0].control.purge()
    for app in apps:
        if hasattr(app, "effectonce"):
            app.effectonce.ledger.close()
        app.close()
    fleet.redis().put_back(url)


def _until(crew: EffectOnce, code: str, ready: Callable[[list[Finding]], bool]) -> list[Finding]:
    found: list[Finding] = []
    for _ in range(20):
        found = examine(crew, wait=1.0, only=[code])
        if ready(found):
            break
    return found


def test_workers_that_are_set_up_differently(crew: EffectOnce) -> None:
    found = _until(crew, "workers-differ", bool)
    assert [each.facts["setting"] for each in found] == ["lease_seconds"]
    assert set(found[0].facts) == {"setting", "60.0", "30.0"}


def test_a_worker_without_a_guard(crew: EffectOnce) -> None:
    found = _until(crew, "worker-unguarded", bool)
    assert [each.facts["worker"] for each in found] == ["wNone@here"]


def test_an_eta_beyond_the_visibility_timeout(crew: EffectOnce) -> None:
    (found,) = _until(crew, "eta-beyond-visibility", bool)
    assert found.facts["due_in"] > 800


def test_nobody_who_answers_is_told_and_somebody_is_not(crew: EffectOnce, make: Make) -> None:
    assert _until(crew, "no-worker-answers", lambda found: not found) == []
    (found,) = ask(make(), "no-worker-answers")
    assert found.severity is Severity.INFO


def test_a_good_system_has_no_findings_but_those_about_missing_workers(make: Make, postgresql_url: str) -> None:
    assert [each.code for each in examine(make(ledger=postgresql_url), wait=0.05)] == ["no-worker-answers"]


def test_a_check_that_cannot_be_asked_is_told_and_not_taken_for_well(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_patient: Any) -> Any:
        raise OSError(0, "no way")

    broken = Check(code="broken", severity=Severity.ERROR, title="", setting="", look=fail)
    monkeypatch.setattr("effectonce.app.doctor.CHECKS", (CHECKS[0], broken))
    (found,) = examine(make(), wait=0.05)
    assert (found.code, found.facts["check"]) == (NOT_ASKED, "broken")


class _Context:
    def __init__(self, app: Any) -> None:
        self.app = app


@pytest.mark.parametrize(("fail_on", "code"), [("error", 0), ("warning", 0), ("info", 1), ("never", 0)])
def test_fail_on_decides_the_exit_code(make: Make, fail_on: str, code: int) -> None:
    words = ["doctor", "--fail-on", fail_on, "--only", "no-worker-answers", "--wait", "0.05", "--json"]
    said = CliRunner().invoke(commands, words, obj=_Context(make().app))
    assert said.exit_code == code
    (told,) = json.loads(said.output)
    assert told["page"] == "docs/reference/doctor/no-worker-answers.md"


def test_an_error_is_exit_code_1_and_the_text_says_what_to_change(make: Make) -> None:
    said = CliRunner().invoke(
        commands, ["doctor", "--only", "early-ack"], obj=_Context(make(task={"acks_late": False}).app)
    )
    assert said.exit_code == 1
    assert re.search(r"error early-ack: .*\n  found:  task=pay, acks_late=False\n  change: acks_late=True", said.output)


CODES = [*(check.code for check in CHECKS), NOT_ASKED]


@pytest.mark.parametrize("code", CODES)
def test_every_check_has_its_page(code: str) -> None:
    text = (PAGES / f"{code}.md").read_text()
    assert text.startswith(f"# {code}\n")
    for part in ("What is wrong", "What was found", "What to change"):
        assert f"\n## {part}\n" in text


def test_every_page_has_its_check_and_the_index_lists_them() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} - {"index"} == set(CODES)
    index = (PAGES / "index.md").read_text()
    severities = {check.code: check.severity.name.lower() for check in CHECKS} | {NOT_ASKED: "info"}
    assert dict(re.findall(r"^\| \[([a-z-]+)\]\([a-z-]+\.md\) \| (\w+) \|", index, re.MULTILINE)) == severities
