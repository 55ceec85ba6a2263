"""What ``show`` prints for each state is fixed by the pages in ``golden``; ``EFFECTONCE_GOLDEN=write`` writes them."""

import json
import os
import re
from pathlib import Path

import pytest

from effectonce.domain.claims import State
from tests.integration.commands.conftest import Desk

GOLDEN = Path(__file__).with_name("golden")


def same_each_time(text: str) -> str:
    """Fences hold the clock of the test, ledgers a number."""
    return re.sub(r"memory://desk\d+", "memory://desk", text)


@pytest.mark.parametrize("state", State, ids=lambda state: state.name.lower())
def test_show_prints_what_is_known_and_what_to_do(desk: Desk, state: State) -> None:
    desk.effect(state, "A-7")
    shown = desk.type("show", "pay:A-7")
    page = GOLDEN / f"{state.name.lower()}.txt"
    if os.environ.get("EFFECTONCE_GOLDEN") == "write":
        page.write_text(same_each_time(shown.output))
    assert same_each_time(shown.output) == page.read_text()
    assert shown.exit_code == 0


def test_a_redacted_effect_shows_nothing_of_what_it_was(desk: Desk) -> None:
    entry = desk.effect(State.COMPLETED, "A-7")
    assert desk.type("redact", "pay:A-7", "--yes").exit_code == 0
    shown = desk.type("show", entry.digest.hex())
    assert "A-7" not in shown.output.replace("id-A-7", "")
    assert "effect (redacted)" in shown.output


def test_show_in_json_has_steps_and_what_waits(desk: Desk) -> None:
    desk.effect(State.UNKNOWN, "A-7")
    (told,) = json.loads(desk.type("show", "pay:A-7", "--json").output)
    assert [(step["name"], step["ended"] is None) for step in told["steps"]] == [("reserve", False), ("pay", True)]
    assert told["waiting"] == [{"task": "shop.pay", "id": "id-A-7", "arguments": "('A-7',) {}", "goes_on": ""}]


def test_an_effect_that_is_not_there_is_exit_code_3(desk: Desk) -> None:
    missing = desk.type("show", "pay:B")
    assert (missing.exit_code, "effect-not-found" in missing.output) == (3, True)
