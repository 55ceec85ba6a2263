"""``effectonce prove``: the proof from the shell."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from effectonce.cli.effectonce import main
from effectonce.testing.page import page_of
from effectonce.testing.verdict import Finding, NotOnce

APP = '''
import sqlalchemy as sa
from celery import Celery

engine = sa.create_engine("{url}")
app = Celery("{name}", broker="memory://", set_as_current=False)


@app.task(name="pay.adds")
def adds(amount):
    """<b>Adds</b>."""
    with engine.begin() as connection:
        connection.execute(sa.text("update accounts set balance = balance + :amount"), {{"amount": amount}})


@app.task(name="pay.sets")
def sets(amount):
    with engine.begin() as connection:
        connection.execute(sa.text("update accounts set balance = :amount"), {{"amount": amount}})


@app.task(name="pay.fails")
def fails(amount):
    raise LookupError("no <account>")
'''


@pytest.fixture
def prove(
    bank: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Callable[..., Result]:
    """Type ``effectonce prove -A pay ...``."""
    name = f"pay_{request.node.name.partition('[')[0]}"
    (tmp_path / f"{name}.py").write_text(APP.format(url=bank.url, name=name))
    monkeypatch.syspath_prepend(str(tmp_path))

    def typed(*words: str) -> Result:
        return CliRunner().invoke(main, ["prove", "-A", name, *words, "--database", str(bank.url)])

    return typed


def balance(bank: sa.Engine) -> int:
    with bank.connect() as connection:
        return int(connection.scalar(sa.text("select balance from accounts")) or 0)


def test_a_task_that_adds_is_found_and_the_page_says_by_which_fault(
    prove: Callable[..., Result], bank: sa.Engine, tmp_path: Path
) -> None:
    page = tmp_path / "proof.html"
    said = prove("pay.adds", "--args", "[5]", "--yes", "--html", str(page))
    assert said.exit_code == 1, said.output
    assert "pay.adds(5) does not take effect once" in said.output
    assert "accounts" in said.output
    assert "\u2717 pay.adds(5) does not take effect once</h1>" in page.read_text()
    assert "balance" in page.read_text()
    assert balance(bank) == 100


def test_a_task_that_sets_passes_and_says_so_in_json(prove: Callable[..., Result], bank: sa.Engine) -> None:
    said = prove("pay.sets", "--args", "[5]", "--yes", "--json")
    told = json.loads(said.output)
    assert (said.exit_code, told["once"], told["findings"]) == (0, True, [])
    assert told["trials"] > len(told["points"]) > 0
    assert balance(bank) == 100


def test_a_task_that_fails_by_itself_is_no_finding(prove: Callable[..., Result]) -> None:
    said = prove("pay.fails", "--args", "[5]", "--yes")
    assert (said.exit_code, "fails when nothing is done to it: LookupError" in said.output) == (1, True)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["pay.ads", "--yes"], "did you mean 'pay.adds'?"),
        (["pay.adds", "--args", "5"], "it must be a JSON list"),
        (["pay.adds", "--args", "[5"], "it is no JSON"),
        (["pay.adds", "--args", "[5]"], "Nobody is there to answer: say --yes"),
    ],
)
def test_what_is_written_wrong_is_said(prove: Callable[..., Result], words: list[str], why: str) -> None:
    said = prove(*words)
    assert (said.exit_code, why in said.output) == (2, True), said.output


def test_an_app_that_is_not_there_is_said() -> None:
    said = CliRunner().invoke(main, ["prove", "-A", "nowhere_at_all", "x", "--yes"])
    assert (said.exit_code, "there is no such app" in said.output) == (2, True)


def test_nothing_of_a_users_code_is_markup_on_the_page() -> None:
    evil = "<script>alert(1)</script>"
    page = page_of(NotOnce(evil, [Finding(evil, (evil,))], [evil], [evil], [evil]))
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 7
