"""What is read of deployment files, format by format."""

from pathlib import Path

import pytest

from effectonce.checker.deployment.durations import seconds_of
from effectonce.checker.deployment.places import Process
from tests.checker.projects import found, lay, survey


def processes(folder: Path) -> list[Process]:
    return [process for _, process in survey(folder).processes]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("30s", 30.0),
        ("1m30s", 90.0),
        ("2min 5s", 125.0),
        ("5 minutes", 300.0),
        ("1h", 3600.0),
        ("infinity", float("inf")),
        ("soon", None),
        ("", None),
    ],
)
def test_spans_of_time_are_read(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("command", "verb", "embeds"),
    [
        ("celery -A shop worker -l info", "worker", False),
        ("celery worker -A shop -B", "worker", True),
        ("celery -A shop worker --beat", "worker", True),
        ("/venv/bin/celery -A shop beat", "beat", False),
        ("python -m celery -A shop beat", "beat", False),
        ("poetry run celery -A shop worker -c 4", "worker", False),
        ("celery -A shop worker -BE", "worker", True),
        ("celery multi start w1 -A shop -B", "worker", True),
        ("celery -A beat worker", "worker", False),
        ("gunicorn shop.wsgi", "", False),
    ],
)
def test_a_command_line_tells_what_celery_is_to_be(command: str, verb: str, embeds: bool) -> None:
    process = Process(name="x", row=1, command=command)
    assert (process.verb, process.embeds_beat) == (verb, embeds)


COMPOSE = """\
x-base: &base
  image: shop
  stop_grace_period: 1m
  deploy:
    replicas: ${REPLICAS:-3}

services:
  beat:
    <<: *base
    command:
      - celery
      - -A
      - shop
      - beat
  worker:
    <<: *base
    entrypoint: sh -c "celery -A shop worker"
    deploy: {replicas: 2}
"""


def test_compose_is_read_through_anchors_merges_lists_and_defaults(tmp_path: Path) -> None:
    lay(tmp_path, **{"compose.yaml": COMPOSE})
    beat, worker = processes(tmp_path)
    assert (beat.verb, beat.replicas and beat.replicas.value, beat.grace and beat.grace.value) == ("beat", 3.0, 60.0)
    assert (worker.verb, worker.replicas and worker.replicas.value) == ("worker", 2.0)
    assert found(tmp_path) == [("EO701", 5)]


def test_two_compose_files_for_two_places_are_no_second_beat(tmp_path: Path) -> None:
    one = "services:\n  beat:\n    command: celery -A shop beat\n"
    lay(tmp_path, **{"docker-compose.yml": one, "docker-compose.prod.yml": one})
    assert found(tmp_path) == []


def test_two_services_of_one_file_are_a_second_beat(tmp_path: Path) -> None:
    lay(
        tmp_path,
        **{
            "compose.yml": """\
                services:
                  beat:
                    command: celery -A shop beat
                  scheduler:
                    command: celery -A shop beat
                  other:
                    command: celery -A other beat
                """
        },
    )
    assert found(tmp_path) == [("EO701", 5)]


HELM = """\
{{- if .Values.beat.enabled }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "shop.name" . }}-beat
  labels:
    {{- include "shop.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.beat.replicas | default 2 }}
  strategy:
    type: Recreate
  template:
    spec:
      containers:
        - name: beat
          image: "{{ .Values.image }}"
          args: ["celery", "-A", "shop", "beat"]
{{- end }}
"""


def test_templates_of_helm_are_read_as_far_as_they_are_yaml(tmp_path: Path) -> None:
    lay(tmp_path, **{"templates/beat.yaml": HELM})
    assert found(tmp_path) == [("EO701", 9)]


def test_a_templated_number_without_a_default_is_not_known(tmp_path: Path) -> None:
    lay(tmp_path, **{"templates/beat.yaml": HELM.replace(" | default 2", "")})
    assert found(tmp_path) == []


AUTOSCALED = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: beat}
spec:
  strategy: {type: Recreate}
  template:
    spec:
      containers:
        - args: [celery, -A, shop, beat]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: beat}
spec:
  scaleTargetRef: {kind: Deployment, name: beat}
"""


def test_an_autoscaler_on_a_beat_is_found(tmp_path: Path) -> None:
    lay(tmp_path, **{"beat.yaml": AUTOSCALED})
    assert found(tmp_path) == [("EO701", 9)]


def test_a_daemon_set_of_beats_is_found(tmp_path: Path) -> None:
    text = AUTOSCALED.partition("---")[0].replace("kind: Deployment", "kind: DaemonSet")
    lay(tmp_path, **{"beat.yaml": text})
    assert found(tmp_path) == [("EO701", 9)]


def test_a_scheduler_with_a_leader_in_the_settings_counts_for_every_beat(tmp_path: Path) -> None:
    lay(
        tmp_path,
        celeryconfig="beat_scheduler = 'redbeat.RedBeatScheduler'\n",
        **{"beat.yaml": AUTOSCALED},
    )
    assert found(tmp_path) == []


def test_a_procfile_is_read(tmp_path: Path) -> None:
    lay(tmp_path, Procfile="web: gunicorn shop\n# worker: celery worker -B\nworker: celery -A shop worker -B\n")
    assert found(tmp_path) == [("EO702", 3)]


def test_a_unit_of_systemd_is_read_over_continued_lines(tmp_path: Path) -> None:
    lay(
        tmp_path,
        celeryconfig="task_time_limit = 600\n",
        **{"celery.service": "[Service]\nExecStart=/venv/bin/celery -A shop \\\n  worker\nTimeoutStopSec=5min\n"},
    )
    (worker,) = processes(tmp_path)
    assert (worker.row, worker.verb) == (2, "worker")
    assert found(tmp_path) == [("EO704", 4)]


def test_a_program_of_supervisord_is_read(tmp_path: Path) -> None:
    lay(
        tmp_path,
        celeryconfig="task_time_limit = 600\n",
        **{"supervisord.conf": "[program:w]\ncommand=celery -A shop worker ; comment\nnumprocs=2\nstopwaitsecs=700\n"},
    )
    (worker,) = processes(tmp_path)
    assert (worker.name, worker.replicas and worker.replicas.value, worker.grace and worker.grace.value) == (
        "w",
        2,
        700,
    )
    assert found(tmp_path) == []


def test_the_command_of_a_dockerfile_is_read(tmp_path: Path) -> None:
    lay(
        tmp_path,
        Dockerfile='FROM python\nRUN pip install celery\nCMD ["celery", "-A", "shop", "worker", "-B"]\n',
    )
    assert found(tmp_path) == [("EO702", 3)]


def test_files_for_development_may_have_a_beat_inside(tmp_path: Path) -> None:
    text = "services:\n  worker:\n    command: celery -A shop worker -B\n"
    lay(tmp_path, **{"docker-compose.dev.yml": text, "compose.override.local.yaml": text})
    assert found(tmp_path) == []


def test_a_comment_silences_a_line_of_yaml(tmp_path: Path) -> None:
    lay(tmp_path, **{"compose.yml": "services:\n  w:\n    command: celery -A shop worker -B  # noqa: EO702\n"})
    assert found(tmp_path) == []


def test_other_yaml_is_none_of_ours_even_if_it_is_broken(tmp_path: Path) -> None:
    lay(tmp_path, **{"messages.yaml": "celery: {{{\n", "workflow.yml": "jobs:\n  celery: [\n"})
    assert found(tmp_path) == []


def test_a_broken_deployment_is_a_finding(tmp_path: Path) -> None:
    lay(tmp_path, **{"compose.yml": "services:\n  worker: {command: celery worker\n"})
    assert [code for code, _ in found(tmp_path)] == ["EO901"]


def test_without_pyyaml_a_deployment_is_a_finding_and_no_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    lay(tmp_path, **{"compose.yml": "services:\n  worker:\n    command: celery -A shop worker -B\n"})
    assert found(tmp_path) == [("EO901", 1)]
