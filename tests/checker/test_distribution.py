"""What an installed checker brings with it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from effectonce.checker.rules import all_rules
from effectonce.cli.effectonce import main

ROOT = Path(__file__).parents[2]


def test_a_wheel_carries_the_page_of_each_rule(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"effectonce/checker/pages/{rule.code}.md" for rule in all_rules()} <= names


def test_the_hook_of_pre_commit_runs_a_command_that_there_is() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    program, command = hook["entry"].split()
    assert program == "effectonce"
    assert command in main.commands


def test_the_command_needs_no_celery_sqlalchemy_or_redis_to_run(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text("from celery import shared_task\n")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"


_PROGRAM = """
import sys
from effectonce.cli.check import check
try:
    check([sys.argv[1]], standalone_mode=False)
except SystemExit:
    pass
print(sorted({"celery", "sqlalchemy", "redis", "kombu"} & set(sys.modules)))
"""


@pytest.mark.parametrize("code", [rule.code for rule in all_rules()])
def test_every_rule_can_be_explained(code: str) -> None:
    done = CliRunner().invoke(main, ["check", "--explain", code])
    assert done.exit_code == 0
    assert done.stdout.startswith(f"# {code} ")
