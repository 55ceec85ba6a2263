"""Settle, rerun, reopen, redact: what they change, what they send, and when they refuse."""

import json
from typing import Any

import pytest

from effectonce import Done, EffectNotFound, EntryRefused, Failed, SettledAsFailed
from effectonce.domain.claims import State
from tests.integration.commands.conftest import Desk

HELD = [State.UNKNOWN, State.POISONED]
FINISHED = [State.COMPLETED, State.FAILED]


def state_of(desk: Desk, order: str = "A") -> State:
    return desk.once.entries.one(f"pay:{order}").entry.state


@pytest.mark.parametrize("state", HELD)
def test_settling_as_done_keeps_the_result_and_sends_what_waits(desk: Desk, state: State) -> None:
    desk.effect(state, "A")
    said = desk.type("settle", "pay:A", "--done", "--result", '{"charge": 7}', "--yes")
    assert said.output == "pay:A is completed; 1 message(s) sent again\n"
    entry = desk.once.entries.one("pay:A").entry
    assert entry.result is not None
    assert json.loads(entry.result.partition(b"\n")[2]) == {"charge": 7}
    ((name, options),) = desk.sent
    assert (name, options["task_id"]) == ("shop.pay", "id-A")
    assert desk.once.entries.one("pay:A").waiting == []


@pytest.mark.parametrize("state", HELD)
def test_settling_as_failed_is_what_later_calls_end_with(desk: Desk, state: State) -> None:
    desk.effect(state, "A")
    assert desk.type("settle", "pay:A", "--failed", "the bank says no", "--yes").exit_code == 0
    assert state_of(desk) is State.FAILED
    from effectonce.app.encoding import decode_failure  # noqa: PLC0415 - beside its only use

    error = decode_failure(desk.app.tasks["shop.pay"], desk.once.entries.one("pay:A").entry.result or b"")
    assert isinstance(error, SettledAsFailed)
    assert "the bank says no" in str(error)


@pytest.mark.parametrize("state", HELD)
def test_rerun_sends_what_waits_and_keeps_the_steps_that_ended(desk: Desk, state: State) -> None:
    desk.effect(state, "A")
    assert desk.type("rerun", "pay:A", "--yes").exit_code == 0
    seen = desk.once.entries.one("pay:A")
    assert (seen.entry.state, [step.name for step in seen.steps]) == (State.RELEASED, ["reserve"])
    assert len(desk.sent) == 1


def test_rerun_without_a_message_says_that_the_key_is_free(desk: Desk) -> None:
    """A hard time limit leaves none."""
    held = desk.claim("A")
    desk.ledger.mark_unknown(held.digest, held.attempt)
    said = desk.type("rerun", "pay:A", "--yes")
    assert "0 message(s) sent again; call the task again" in said.output


@pytest.mark.parametrize("state", FINISHED)
def test_a_reopened_effect_is_free_and_has_no_steps(desk: Desk, state: State) -> None:
    desk.effect(state, "A")
    assert desk.type("reopen", "pay:A", "--yes").exit_code == 0
    seen = desk.once.entries.one("pay:A")
    assert (seen.entry.state, list(seen.steps), desk.sent) == (State.RELEASED, [], [])


@pytest.mark.parametrize(
    ("words", "states"),
    [
        (("settle", "--done"), [State.CLAIMED, State.RELEASED, *FINISHED]),
        (("rerun",), [State.CLAIMED, State.RELEASED, *FINISHED]),
        (("reopen",), [State.CLAIMED, State.RELEASED, *HELD]),
        (("redact",), [State.CLAIMED, State.RELEASED, *HELD]),
    ],
    ids=["settle", "rerun", "reopen", "redact"],
)
def test_what_a_state_does_not_allow_is_exit_code_4_and_changes_nothing(
    desk: Desk, words: tuple[str, ...], states: list[State]
) -> None:
    for number, state in enumerate(states):
        desk.effect(state, str(number))
        refused = desk.type(words[0], f"pay:{number}", *words[1:], "--yes")
        assert (refused.exit_code, "entry-refused" in refused.output) == (4, True)
        assert state_of(desk, str(number)) is state
    assert desk.sent == []


@pytest.mark.parametrize("words", [["settle", "pay:A", "--done"], ["rerun", "pay:A"]])
def test_a_dry_run_changes_nothing(desk: Desk, words: list[str]) -> None:
    desk.effect(State.UNKNOWN, "A")
    said = desk.type(*words, "--dry-run")
    assert said.output.startswith("would ")
    assert "1 message(s)" in said.output
    assert state_of(desk) is State.UNKNOWN
    assert desk.sent == []


def test_without_anybody_to_ask_nothing_is_changed(desk: Desk) -> None:
    desk.effect(State.UNKNOWN, "A")
    said = desk.type("rerun", "pay:A")
    assert (said.exit_code, "--yes" in said.output) == (2, True)
    assert state_of(desk) is State.UNKNOWN


@pytest.mark.parametrize(
    "words", [[], ["--done", "--failed", "no"], ["--failed", "no", "--result", "1"], ["--done", "--result", "{"]]
)
def test_a_word_that_says_nothing_clear_is_a_usage_error(desk: Desk, words: list[str]) -> None:
    desk.effect(State.UNKNOWN, "A")
    assert desk.type("settle", "pay:A", "--yes", *words).exit_code == 2
    assert state_of(desk) is State.UNKNOWN


def test_json_says_what_was_done(desk: Desk) -> None:
    desk.effect(State.UNKNOWN, "A")
    told = json.loads(desk.type("settle", "pay:A", "--done", "--yes", "--json").output)
    assert (told["was"], told["state"], told["sent"]) == ("unknown", "completed", 1)


def test_a_broker_that_is_away_leaves_the_message_and_the_same_word_sends_it_later(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill between the change and the publish leaves the same."""
    desk.effect(State.UNKNOWN, "A")

    def away(*_: Any, **__: Any) -> None:
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(desk.app, "send_task", away)
        with pytest.raises(ConnectionError):
            desk.once.entries.settle("pay:A", Done(7))
    assert (state_of(desk), len(desk.once.entries.one("pay:A").waiting)) == (State.COMPLETED, 1)
    assert desk.once.entries.settle("pay:A", Done(7)).sent == 1
    with pytest.raises(EntryRefused):
        desk.once.entries.settle("pay:A", Failed("too late"))


def test_a_key_that_two_tasks_use_must_be_told_apart_by_digest(desk: Desk) -> None:
    entry = desk.effect(State.COMPLETED, "A")
    other = desk.claim("B")
    desk.ledger._records[other.digest].entry = entry_named(desk, other.digest, "pay:A")
    with pytest.raises(EntryRefused, match="several"):
        desk.once.entries.one("pay:A")
    assert desk.once.entries.one(entry.digest.hex()).entry.digest == entry.digest


def entry_named(desk: Desk, digest: bytes, key: str) -> Any:
    from dataclasses import replace  # noqa: PLC0415 - beside its only use

    return replace(desk.ledger._records[digest].entry, key=key)


def test_a_key_that_is_not_there_is_said_so(desk: Desk) -> None:
    with pytest.raises(EffectNotFound):
        desk.once.entries.rerun("pay:nobody")


def test_a_redacted_effect_still_stands_in_the_way(desk: Desk) -> None:
    pay = desk.app.tasks["shop.pay"]
    assert pay("Anna") == "Anna"
    (entry,) = desk.ledger.entries(state=State.COMPLETED, limit=10)
    desk.once.entries.redact(entry.key)
    from effectonce import ResultNotKept  # noqa: PLC0415 - beside its only use

    with pytest.raises(ResultNotKept, match="redacted"):
        pay("Anna")
    assert "Anna" not in repr(desk.ledger.read(entry.digest))
