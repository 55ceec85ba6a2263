"""``effectonce -A proj`` is ``celery -A proj once``; completion, terminals and pipes."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from celery import Celery
from click.testing import CliRunner, Result

from effectonce import EffectOnce, Leased
from effectonce.cli import tables
from effectonce.cli.effectonce import main
from effectonce.cli.on_app import COMMANDS
from effectonce.cli.once import once
from effectonce.stores.sql import looking
from effectonce.stores.sql.ledger import SqlLedger
from effectonce.testing.conformance.scene import DONE, granted, new_claim
from tests.integration.commands.conftest import Desk


@pytest.fixture
def named(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """An app that can be named with -A."""
    module = ModuleType("shop_of_this_test")
    module.app = desk.app  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "shop_of_this_test", module)
    return desk


def test_the_program_knows_every_command_on_an_app() -> None:
    assert set(COMMANDS) == set(once.commands)


def _leaves(group: click.Group) -> Iterator[click.Command]:
    for command in group.commands.values():
        if isinstance(command, click.Group):
            yield from _leaves(command)
        else:
            yield command


def test_every_command_that_ends_has_json() -> None:
    lacking = [
        each.name for each in _leaves(once) if "--json" not in [name for option in each.params for name in option.opts]
    ]
    assert lacking == ["web"]


def paid(order: str) -> str:
    return order


Typed = Callable[..., Result]


@pytest.fixture
def on_sqlite(sqlite_url: str) -> Iterator[tuple[EffectOnce, Typed]]:
    """An app on a database without tables, and what a person types about it."""
    app = Celery("on-sqlite", broker="memory://", backend="cache+memory://", set_as_current=False)
    extension = EffectOnce(app, ledger=sqlite_url)
    context = type("Context", (), {"app": app})()
    yield extension, lambda *words: CliRunner().invoke(once, words, obj=context)
    extension.ledger.close()
    app.close()


def test_creating_and_draining_in_json(on_sqlite: tuple[EffectOnce, Typed]) -> None:
    extension, typed = on_sqlite
    answers = [
        json.loads(typed(*words).output) for words in (["schema", "create", "--json"], ["relay", "--drain", "--json"])
    ]
    assert answers == [{"ready": [extension.ledger.name]}, {"sent": 0, "left": 0, "stuck": 0}]


def test_a_dry_run_of_prune_counts_what_is_over_and_leaves_it(on_sqlite: tuple[EffectOnce, Typed]) -> None:
    extension, typed = on_sqlite
    ledger = extension.ledger
    ledger.create_schema()
    ends = [replace(DONE, keep=keep) for keep in (0.0, 0.0, 60.0)]
    assert all(ledger.complete(granted(ledger, new_claim()), end) for end in ends)
    assert typed("prune", "--dry-run").output == f"{ledger.name}: 2 entries would be removed\n"
    assert json.loads(typed("prune", "--dry-run", "--json").output) == {ledger.name: 2}
    assert typed("prune").output == f"{ledger.name}: 2 entries removed\n"
    assert json.loads(typed("prune", "--dry-run", "--json").output) == {ledger.name: 0}


def test_a_key_that_a_task_makes_is_looked_up_and_not_searched_for(
    on_sqlite: tuple[EffectOnce, Typed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the kind of key: by template, by callable, brought by the call; a long one by the digest at its end."""
    extension, typed = on_sqlite
    extension.ledger.create_schema()
    kinds: list[tuple[str, Leased, Any]] = [
        ("template", Leased("pay:{order}"), "it's 7"),
        ("callable", Leased(lambda order: (order, 1)), "A:7"),
        ("mail", Leased("{order}"), "x" * 300),
    ]
    for name, policy, order in kinds:
        extension.app.task(paid, name=f"shop.{name}", once=policy, shared=False)(order)
    shown = [entry.key for entry in extension.ledger.entries(state=None, limit=10)]
    monkeypatch.setattr(SqlLedger, "find", None)
    for key in shown:
        said = typed("show", key, "--json")
        assert [each["key"] for each in json.loads(said.output)] == [key]
    assert len(shown) == len(kinds)


def test_a_key_of_no_task_of_this_app_is_searched_for_in_pieces(
    on_sqlite: tuple[EffectOnce, Typed], monkeypatch: pytest.MonkeyPatch
) -> None:
    extension, typed = on_sqlite
    ledger = extension.ledger
    ledger.create_schema()
    monkeypatch.setattr(looking, "FIND_LOOK", 3)
    claims = [new_claim(key=f"of-others:{number % 5}") for number in range(10)]
    assert all(granted(ledger, claim) for claim in claims)
    found = json.loads(typed("show", "of-others:3", "--json").output)
    assert sorted(each["digest"] for each in found) == sorted(claims[at].digest.hex() for at in (3, 8))
    assert typed("show", "of-others:7").exit_code == 3


def test_a_dry_run_of_an_upgrade_names_the_steps_and_makes_none(on_sqlite: tuple[EffectOnce, Typed]) -> None:
    extension, typed = on_sqlite
    would = typed("schema", "upgrade", "--dry-run").output
    assert would.startswith(f"{extension.ledger.name}: would make pre_0001")
    assert typed("schema", "check").exit_code == 1, "nothing was made"
    assert typed("schema", "upgrade").output == would.replace("would make ", "")
    assert "nothing is missing" in typed("schema", "upgrade", "--dry-run").output


def test_it_does_what_celerys_command_does(named: Desk) -> None:
    from effectonce.domain.claims import State  # noqa: PLC0415 - beside its only use

    named.effect(State.COMPLETED, "A-7")
    said = CliRunner().invoke(main, ["-A", "shop_of_this_test", "list", "--json"])
    assert (said.exit_code, said.output) == (0, named.type("list", "--json").output)


@pytest.mark.parametrize("words", [["status"], ["-A", "no_such_module_here", "status"], ["-A", "os", "status"]])
def test_without_an_app_it_refuses_with_2(words: list[str]) -> None:
    said = CliRunner().invoke(main, words)
    assert (said.exit_code, "-A" in said.output) == (2, True)


def test_help_shows_both_kinds_and_loads_no_celery() -> None:
    script = "import sys; from effectonce.cli.effectonce import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    script += "print('celery' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert "doctor" in shown
    assert "demo" in shown
    assert shown.endswith("False\n")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("effectonce doc", "doctor"), ("effectonce -A proj list --state poi", "poisoned"), ("effectonce che", "check")],
)
def test_a_shell_completes_commands_options_and_values(typed: str, offered: str) -> None:
    words = typed.split()
    env = {
        **os.environ,
        "_EFFECTONCE_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
    }
    program = Path(sys.executable).with_name("effectonce")
    shown = subprocess.run([program], check=False, capture_output=True, text=True, env=env).stdout
    assert offered in [line.partition(",")[2] for line in shown.splitlines()]


def test_a_terminal_gets_a_table_and_a_pipe_gets_plain_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("state", "key"), ("completed", "pay:[red]A[/red]")]
    assert tables.aligned(rows) == "state      key\ncompleted  pay:[red]A[/red]"
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        drawn = tables.aligned(rows)
    os.close(ours)
    assert "─" in drawn
    assert "pay:[red]A[/red]" in drawn
