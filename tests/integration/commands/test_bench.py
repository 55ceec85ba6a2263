"""``effectonce bench``: benchmarks are found in a checkout, and get their own options."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.__main__ import NAMES
from effectonce.cli.effectonce import main

ROOT = Path(__file__).parents[3]


def test_the_list_says_what_each_benchmark_measures() -> None:
    done = CliRunner().invoke(main, ["bench", "--list", "--checkout", str(ROOT)])
    assert done.exit_code == 0
    lines = dict(line.split(maxsplit=1) for line in done.output.splitlines())
    assert {"costs", "raw", "rivals", "growth"} <= set(lines)
    assert set(lines) == set(NAMES)


def test_a_benchmark_gets_its_own_options(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "docs")
    done = CliRunner().invoke(main, ["bench", "failover", "--help"])
    assert done.exit_code == 0
    assert "--lease" in capfd.readouterr().out


def test_a_name_that_is_no_benchmark_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    done = CliRunner().invoke(main, ["bench", "--checkout", str(ROOT), "speed"])
    assert done.exit_code != 0
    assert "no benchmark speed" in capfd.readouterr().err


def test_without_a_checkout_it_says_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["bench", "costs"])
    assert done.exit_code == 2
    assert "--checkout" in done.output
