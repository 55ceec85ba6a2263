"""What becomes of a step that an earlier attempt began."""

from typing import Any

import pytest

from effectonce.domain.steps import (
    Answer,
    Course,
    Done,
    GiveBack,
    Hold,
    NotDone,
    OnUnknown,
    Run,
    Skip,
    Step,
    Unknown,
    answer_of,
    by_name,
    course,
    is_open,
    waits_for_a_person,
)

BEGUN = Step(name="pay", attempt=b"a", fence=1, began=1.0)
ENDED = Step(name="pay", attempt=b"a", fence=1, began=1.0, ended=2.0, result=b"1")


@pytest.mark.parametrize(
    ("step", "answer", "on_unknown", "expected"),
    [
        (None, Unknown(), "retry", Run(again=False)),
        (None, Unknown(), "hold", Run(again=False)),
        (ENDED, Unknown(), "retry", GiveBack(step=ENDED)),
        (ENDED, NotDone(), "skip", GiveBack(step=ENDED)),
        (BEGUN, NotDone(), "hold", Run(again=True)),
        (BEGUN, NotDone(), "skip", Run(again=True)),
        (BEGUN, Unknown(), "retry", Run(again=True)),
        (BEGUN, Unknown(), "skip", Skip()),
        (BEGUN, Unknown(), "hold", Hold()),
    ],
)
def test_what_becomes_of_a_step(step: Step | None, answer: Answer, on_unknown: OnUnknown, expected: Course) -> None:
    assert course(step, answer, on_unknown) == expected


@pytest.mark.parametrize(
    ("said", "answer"),
    [(NotDone, NotDone()), (Unknown, Unknown()), (NotDone(), NotDone()), (Unknown(), Unknown()), (Done(3), Done(3))],
)
def test_the_outside_answers_with_an_object_or_a_bare_class(said: Any, answer: Answer) -> None:
    assert answer_of(said) == answer


@pytest.mark.parametrize("said", [None, True, "done", Done])
def test_an_answer_that_could_mean_anything_is_refused_with_its_type(said: Any) -> None:
    with pytest.raises(TypeError, match=rf"Done\(result\), NotDone or Unknown, not {type(said).__name__}$"):
        answer_of(said)


def test_an_effect_waits_for_a_person_where_its_task_or_a_step_says_so() -> None:
    holding = Step(name="pay", attempt=b"a", fence=1, began=1.0, holds=True)
    over = Step(name="pay", attempt=b"a", fence=1, began=1.0, ended=2.0, holds=True)
    assert waits_for_a_person([], holds=True), "the body may have acted outside of a step"
    assert not waits_for_a_person([], holds=False)
    assert waits_for_a_person(iter([ENDED, holding]), holds=False)
    assert waits_for_a_person([holding], holds=True)
    assert not waits_for_a_person([over], holds=True)
    assert not waits_for_a_person([BEGUN], holds=True), "a step that says otherwise counts before its task"


def test_a_step_is_open_until_its_end_is_known() -> None:
    assert is_open(BEGUN)
    assert not is_open(ENDED)
    assert by_name([ENDED]) == {"pay": ENDED}
    assert (ENDED.kept, ENDED.holds, ENDED.skipped) == (True, False, False)
