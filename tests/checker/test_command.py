"""The command: what it prints, what it leaves out, how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif

from effectonce.cli.effectonce import main

BAD = """\
from uuid import uuid4

import redis
from celery import shared_task

client = redis.Redis()


@shared_task
def sync(account):
    if not client.set(f"sync:{uuid4()}", "1", nx=True, ex=7200):
        return
"""
ROW = 11


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.py").write_text(BAD)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", *arguments])


def found(*arguments: str) -> list[Any]:
    listed = json.loads(run(*arguments, "--output-format", "json").stdout)
    assert isinstance(listed, list)
    return listed


def codes(*arguments: str) -> list[str]:
    return [each["code"] for each in found(*arguments)]


def test_the_text_shows_the_line_with_a_caret_under_what_is_meant(project: Path) -> None:
    del project
    done = run(".")
    assert done.exit_code == 1
    assert f"tasks.py:{ROW}:23: EO102 [random-key] this key is claimed" in done.stdout
    line, caret = done.stdout.splitlines()[2:4]
    assert line.endswith('if not client.set(f"sync:{uuid4()}", "1", nx=True, ex=7200):')
    assert line[caret.index("^") : caret.rindex("^") + 1] == 'f"sync:{uuid4()}"'
    assert done.stdout.splitlines()[-1].startswith("Found 1 mistake.")


def test_the_json_has_the_shape_of_ruff(project: Path) -> None:
    (one,) = found(".")
    assert one["code"] == "EO102"
    assert one["name"] == "random-key"
    assert one["filename"] == str(project / "tasks.py")
    assert one["location"] == {"row": ROW, "column": 23}
    assert one["end_location"] == {"row": ROW, "column": 40}
    assert one["url"].endswith("/EO102")
    assert set(one) >= {"cell", "fix", "message", "noqa_row", "severity"}


def test_the_sarif_is_valid_and_places_the_finding(project: Path) -> None:
    del project
    text = run(".", "--output-format", "sarif").stdout
    Sarif.model_validate_json(text)
    log = json.loads(text)
    (result,) = log["runs"][0]["results"]
    rules = log["runs"][0]["tool"]["driver"]["rules"]
    assert log["version"] == "2.1.0"
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == "EO102"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "tasks.py"
    assert place["region"] == {"startLine": ROW, "startColumn": 23, "endLine": ROW, "endColumn": 40}


def test_the_annotations_of_github_name_file_and_line(project: Path) -> None:
    del project
    text = run(".", "--output-format", "github").stdout
    assert text.startswith(f"::error title=effectonce (EO102 random-key),file=tasks.py,line={ROW},endLine={ROW},col=23")
    assert text.count("\n") == 1


def test_nothing_found_exits_with_zero_and_says_so(project: Path) -> None:
    (project / "tasks.py").write_text("print('hello')\n")
    done = run(".")
    assert (done.exit_code, done.stdout) == (0, "All checks passed.\n")
    assert found(".") == []


def test_exit_zero_only_changes_the_exit_code(project: Path) -> None:
    del project
    done = run(".", "--exit-zero")
    assert done.exit_code == 0
    assert "EO102" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["missing.py"],
        [".", "--select", "EO999"],
        [".", "--baseline", "missing.json"],
        [".", "--write-baseline"],
        [".", "--per-file-ignores", "EO102"],
        [".", "--config", "missing.toml"],
        ["--explain", "EO999"],
        [".", "--output-format", "xml"],
    ],
)
def test_a_run_that_cannot_be_made_exits_with_two(project: Path, arguments: list[str]) -> None:
    del project
    assert run(*arguments).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--select", "EO102"], ["EO102"]),
        (["--select", "EO1"], ["EO102"]),
        (["--select", "EO2,EO3"], []),
        (["--ignore", "EO102"], []),
        (["--ignore", "EO1"], []),
        (["--select", "EO102", "--ignore", "EO1"], ["EO102"]),
        (["--select", "EO1", "--ignore", "EO102"], []),
        (["--per-file-ignores", "tasks.py:EO1"], []),
        (["--per-file-ignores", "other.py:EO1"], ["EO102"]),
        (["--exclude", "tasks.py"], []),
        (["--select", "EO2", "--extend-select", "EO1"], ["EO102"]),
    ],
)
def test_rules_and_files_are_chosen(project: Path, arguments: list[str], expected: list[str]) -> None:
    del project
    assert codes(".", *arguments) == expected


@pytest.mark.parametrize(
    ("comment", "silent"),
    [
        ("# noqa", True),
        ("# noqa: EO102", True),
        ("# noqa: E501, EO102", True),
        ("# noqa: EO101", False),
        ("# no", False),
    ],
)
def test_a_comment_silences_its_line(project: Path, comment: str, silent: bool) -> None:
    (project / "tasks.py").write_text(BAD.replace("ex=7200):", f"ex=7200):  {comment}"))
    assert (codes(".") == []) is silent


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('ignore = ["EO1"]', []),
        ('select = ["EO5"]', []),
        ('exclude = ["tasks.py"]', []),
        ('[tool.effectonce.check.per-file-ignores]\n"tasks.py" = ["EO102"]', []),
        ("", ["EO102"]),
    ],
)
def test_options_stand_in_pyproject(project: Path, table: str, expected: list[str]) -> None:
    (project / "pyproject.toml").write_text(f"[tool.effectonce.check]\n{table}\n")
    assert codes(".") == expected


def test_a_misspelt_option_in_pyproject_is_refused_with_the_nearest_name(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.effectonce.check]\nignor = ["EO1"]\n')
    done = run(".")
    assert done.exit_code == 2
    assert "did you mean 'ignore'?" in done.stderr


def test_a_baseline_hides_what_it_knows_until_the_line_changes(project: Path) -> None:
    assert run(".", "--baseline", "known.json", "--write-baseline").exit_code == 0
    assert codes(".", "--baseline", "known.json") == []
    (project / "tasks.py").write_text("# a line above\n" + BAD)
    assert codes(".", "--baseline", "known.json") == []
    (project / "tasks.py").write_text(BAD.replace("7200", "7300"))
    assert codes(".", "--baseline", "known.json") == ["EO102"]


def test_a_second_mistake_like_a_known_one_is_shown(project: Path) -> None:
    run(".", "--baseline", "known.json", "--write-baseline")
    (project / "tasks.py").write_text(BAD + BAD[BAD.index("@shared_task") :].replace("def sync", "def again"))
    assert codes(".", "--baseline", "known.json") == ["EO102"]


def test_statistics_count_by_rule(project: Path) -> None:
    del project
    assert run(".", "--statistics").stdout == "     1  EO102  random-key\n"


def test_a_rule_is_explained_by_its_page(project: Path) -> None:
    del project
    done = run("--explain", "eo102")
    assert done.exit_code == 0
    assert done.stdout.startswith("# EO102 random-key\n")


def test_a_report_goes_to_a_file(project: Path) -> None:
    done = run(".", "-o", "report.txt")
    assert done.stdout == ""
    assert "EO102" in (project / "report.txt").read_text()


def test_columns_count_characters_and_not_bytes(project: Path) -> None:
    (project / "tasks.py").write_text(BAD.replace("sync:{", "дело:{"))
    (one,) = found(".")
    assert one["location"]["column"] == 23
    assert one["end_location"]["column"] == 40


def test_a_broken_file_is_reported_and_the_others_are_checked(project: Path) -> None:
    (project / "broken.py").write_text("def broken(:\n")
    assert codes(".") == ["EO901", "EO102"]


@pytest.mark.parametrize("place", ["tests/tasks.py", "shop/migrations/0001_start.py", "test_tasks.py", "conftest.py"])
def test_tests_and_migrations_are_read_when_asked_for(project: Path, place: str) -> None:
    (project / "tasks.py").unlink()
    file = project / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(BAD)
    assert codes(".") == []
    assert codes(".", "--include-tests") == ["EO102"]
    assert codes(place) == ["EO102"]
    (project / "pyproject.toml").write_text("[tool.effectonce.check]\ninclude-tests = true\n")
    assert codes(".") == ["EO102"]


def test_a_switch_in_pyproject_is_true_or_false(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.effectonce.check]\ninclude-tests = "yes"\n')
    done = run(".")
    assert done.exit_code == 2
    assert "include-tests must be true or false" in done.stderr


def test_what_a_person_runs_by_hand_is_advice(project: Path) -> None:
    sends = """
from django.db import transaction
from tasks import sync

def handle(order):
    with transaction.atomic():
        order.save()
        sync.delay(order.pk)
"""
    command = project / "shop" / "management" / "commands" / "resend.py"
    command.parent.mkdir(parents=True)
    command.write_text(sends)
    (project / "views.py").write_text(sends)
    severities = {Path(each["filename"]).name: each["severity"] for each in found(".", "--select", "EO501")}
    assert severities == {"resend.py": "advice", "views.py": "error"}
