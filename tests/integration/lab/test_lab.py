"""The command `effectonce lab`, with real workers."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from effectonce.cli.effectonce import main
from effectonce.lab.scenarios import SCENARIOS
from tests.mutants.catalogue import MUTANTS

ROOT = Path(__file__).parents[3]
LAB = (str(Path(sys.executable).with_name("effectonce")), "lab")


def test_a_quick_scenario_shows_the_double_and_the_guard(tmp_path: Path) -> None:
    out, page = tmp_path / "lab.json", tmp_path / "lab.html"
    command = [*LAB, "--only", "sent-again-late", "--jobs", "2"]
    command += ["--contenders", "celery,effectonce", "--json", str(out), "--html", str(page)]
    command += ["--ledger", "sqlite"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    rows = {row["contender"]: row for row in json.loads(out.read_text())["rows"]}
    assert rows["celery"]["outcome"]["effects"] == {"order": 2}
    assert rows["effectonce"]["outcome"]["effects"] == {"order": 1}
    assert page.read_text().count("<svg") == 2


@pytest.mark.soak
def test_a_broken_guard_makes_the_lab_fail(tmp_path: Path) -> None:
    """An entry is no longer looked at: a second message runs again."""
    mutant = next(each for each in MUTANTS if each.name == "a second claim replaces the first one's entry")
    source = tmp_path / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    broken = source / "effectonce" / mutant.file
    broken.write_text(broken.read_text().replace(mutant.old, mutant.new))
    done = subprocess.run(
        [*LAB, "--only", "sent-again-late", "--contenders", "effectonce", "--ledger", "sqlite"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    assert done.returncode == 1, done.stdout
    assert "WRONG: effectonce in sent-again-late: doubled (2x)" in done.stdout


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_effectonce_is_right_in_the_whole_table() -> None:
    done = subprocess.run(
        [*LAB, "--contenders", "effectonce"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_list_names_every_scenario_with_its_question() -> None:
    told = CliRunner().invoke(main, ["lab", "--list"])
    assert told.exit_code == 0
    assert [f"{each.name}\n    {each.question} Right: {each.right}." in told.output for each in SCENARIOS.values()] == [
        True
    ] * len(SCENARIOS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "childkilled"], "there is no childkilled; there are"),
        (["--contenders", "dramatiq"], "there is no dramatiq; there are"),
        (["--broker", "sqs://x"], "sqs:// is none of redis://"),
        (["--ledger", "sqlite:///x.db"], "each trial has a file of its own"),
        (["--ledger", "redis://x"], "not redis://"),
    ],
)
def test_a_bad_option_is_refused_before_anything_starts(words: list[str], said: str) -> None:
    told = CliRunner().invoke(main, ["lab", *words])
    assert told.exit_code == 2
    assert said in " ".join(told.output.split())
