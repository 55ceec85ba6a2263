"""Prometheus figures, alert rules, traces and log lines, made of what really happened."""

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry import metrics, trace
from opentelemetry.instrumentation.celery import CeleryInstrumentor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from effectonce.app.exporter import text_of
from effectonce.app.observing import happened
from effectonce.events import Event, Name
from effectonce.observers import log, log_ordinary_too
from tests.integration.seeing.conftest import House
from tests.services.tools import promtool

MONITORING = Path(__file__).parents[3] / "monitoring"


@pytest.fixture
def counted(sqlite_url: str) -> Iterator[House]:
    house = House(sqlite_url, metrics=True)
    yield house
    house.close()


def _figure(text: str, name: str, **labels: str) -> float:
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    for line in text.splitlines():
        if re.match(rf"{name}[ {{]", line) and all(each in line for each in wanted):
            return float(line.rpartition(" ")[2])
    return 0.0


def test_effects_and_duplicates_are_counted_by_cause(counted: House) -> None:
    before = text_of(counted.once).decode()
    counted.deliver("pay", "A", id="one")
    counted.deliver("pay", "A", id="two")
    after = text_of(counted.once).decode()
    named = {"task": "pay", "cause": "caller", "answer": "replayed"}
    ended = {"task": "pay", "outcome": "completed"}
    for name, labels in (("effectonce_duplicates_total", named), ("effectonce_effects_total", ended)):
        assert _figure(after, name, **labels) - _figure(before, name, **labels) == 1


def test_the_ledger_is_asked_for_what_stands_open(counted: House) -> None:
    counted.hold("mail", "A", id="one")
    text = text_of(counted.once).decode()
    assert _figure(text, "effectonce_entries", state="claimed") == 1
    assert _figure(text, "effectonce_ledger_up") == 1
    assert _figure(text, "effectonce_outbox_waiting", stage="stuck") == 0


def test_no_key_is_a_label(counted: House) -> None:
    counted.deliver("pay", "secret-order")
    assert "secret-order" not in text_of(counted.once).decode()


PREFORK = """
import os, sys
from celery import Celery
from effectonce import EffectOnce, Transactional
from effectonce.app import exporter

app = Celery("forked", broker="memory://", backend="cache+memory://")
once = EffectOnce(app, ledger=sys.argv[1], metrics_port=0)

@app.task(name="pay", once=Transactional("pay:{order}"))
def pay(order):
    return order

exporter.prepare(once)
pid = os.fork()
if not pid:
    pay(1), pay(2)
    os._exit(0)
os.waitpid(pid, 0)
print(exporter.text_of(once).decode())
"""


def test_the_main_process_shows_what_its_children_counted(sqlite_url: str, tmp_path: Path) -> None:
    script = tmp_path / "forked.py"
    script.write_text(PREFORK)
    shown = subprocess.run([sys.executable, script, sqlite_url], check=True, capture_output=True, text=True).stdout
    assert _figure(shown, "effectonce_effects_total", task="pay", outcome="completed") == 2
    assert _figure(shown, "effectonce_ledger_up") == 1


def test_promtool_accepts_the_alert_rules_and_they_fire_when_they_should() -> None:
    tool = promtool()
    for words in (["check", "rules", "effectonce-alerts.yml"], ["test", "rules", "effectonce-alerts-test.yml"]):
        done = subprocess.run([tool, *words], cwd=MONITORING, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_what_alerts_and_panels_ask_for_is_what_there_is(counted: House) -> None:
    counted.deliver("pay", "A")
    shown = set(re.findall(r"^# TYPE (effectonce_\w+) ", text_of(counted.once).decode(), re.MULTILINE))
    rules = yaml.safe_load((MONITORING / "effectonce-alerts.yml").read_text())
    asked = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    board = json.loads((MONITORING / "effectonce-grafana.json").read_text())
    asked += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert {name for expression in asked for name in re.findall(r"effectonce_\w+", expression)} <= shown


@pytest.fixture(scope="module")
def telemetry() -> Iterator[tuple[InMemorySpanExporter, InMemoryMetricReader]]:
    """OpenTelemetry's providers can be set once in a process."""
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
    CeleryInstrumentor().instrument()  # type: ignore[no-untyped-call]
    yield spans, reader
    CeleryInstrumentor().uninstrument()  # type: ignore[no-untyped-call]
    provider.shutdown()


def test_an_attempt_is_a_child_of_celerys_span(telemetry: Any, sqlite_url: str) -> None:
    spans, reader = telemetry
    house = House(sqlite_url, traces=True)
    house.deliver("pay", "A", id="one")
    spans.clear()
    house.deliver("pay", "A", id="two")
    found = {span.name: span for span in spans.get_finished_spans()}
    attempt, run = found["effectonce.attempt"], found["run/pay"]
    assert attempt.parent.span_id == run.context.span_id
    assert attempt.attributes["effectonce.key"] == "pay:A"
    assert attempt.attributes["effectonce.cause"] == "caller"
    assert [event.name for event in attempt.events][-1] == "effect.replayed"
    names = {
        metric.name
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert {"effectonce.effect.completed", "effectonce.effect.replayed"} <= names
    house.close()


def test_a_signal_tells_of_each_event(house: House) -> None:
    seen: list[Event] = []

    def receive(event: Event, **_: Any) -> None:
        seen.append(event)

    happened.connect(receive, sender=house.app)
    house.deliver("pay", "A")
    happened.disconnect(receive, sender=house.app)
    assert [event.name for event in seen] == [Name.EFFECT_COMPLETED]


def test_an_observer_that_fails_harms_nothing(house: House, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_event: Event) -> None:
        raise ValueError(0)

    house.deliver("pay", "A")
    assert house.once._observing is not None
    house.once._observing._others.append(fail)
    for order in "BCD":
        house.deliver("pay", order)
    assert caplog.text.count("an observer of events failed") == 1


def test_the_ordinary_path_is_silent_at_info_unless_asked(caplog: pytest.LogCaptureFixture) -> None:
    event = Event(name=Name.EFFECT_COMPLETED, key="pay:A", task="pay", scope="money", attempt="ab", fence=7)
    with caplog.at_level(logging.INFO, "effectonce"):
        log(event)
        assert caplog.text == ""
        log_ordinary_too(event)
    assert caplog.messages == ["effect.completed key=pay:A scope=money task=pay attempt=ab fence=7"]


def test_a_duplicates_line_names_its_cause(house: House, caplog: pytest.LogCaptureFixture) -> None:
    house.deliver("pay", "A", id="one")
    with caplog.at_level(logging.INFO, "effectonce"):
        house.deliver("pay", "A", id="two")
    (line,) = [line for line in caplog.messages if line.startswith("effect.replayed")]
    assert re.search(r"key=pay:A .*attempt=\w{16} .*cause=caller", line)
