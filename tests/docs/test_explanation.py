"""Pictures and code of the explanations are what the library does."""

import re

import pytest
import sqlalchemy as sa

from effectonce.domain.claims import State
from tests.docs.conftest import DOCS, Runs
from tests.docs.life import NOTHING, PICTURE, arrows, picture, table


def test_the_picture_of_the_states_shows_what_a_ledger_does() -> None:
    """After a change: `python -m tests.docs.life`."""
    assert PICTURE.read_text() == picture(arrows())


def test_the_table_of_the_moves_shows_what_a_ledger_does() -> None:
    part = (DOCS / "explanation/life-of-an-effect.md").read_text().partition("| from | by | to |")[2]
    assert re.match(r"\n\|---\|---\|---\|\n((?:\|.*\n)+)", part)[1].splitlines() == table(arrows())  # type: ignore[index]


def test_every_state_is_reached_and_left() -> None:
    states = {state.name.lower() for state in State} | {NOTHING}
    assert {start for start, _ in arrows()} == {end for _, end in arrows()} == states


@pytest.mark.parametrize("page", ["explanation/interview.md", "ru/interview.md"])
def test_the_answer_to_the_interview_question_does_what_it_says(page: str, runs: Runs) -> None:
    shown = runs(page)
    with shown["engine"].begin() as connection:
        connection.execute(sa.text("create table payments (order_id integer, amount integer)"))
        connection.execute(sa.text("create table orders (id integer, status text)"))
        connection.execute(sa.text("insert into orders values (7, 'new')"))
    assert [shown["charge"](7, 100), shown["charge"](7, 100)] == ["charged", "charged"]
    assert [shown["sync"]("acme"), shown["sync"]("acme")] == ["synced acme", "synced acme"]
    shown["mark_paid"](7)
    shown["mark_paid"](7)
    with shown["engine"].connect() as connection:
        assert connection.execute(sa.text("select * from payments")).all() == [(7, 100)]
        assert connection.execute(sa.text("select * from orders")).all() == [(7, "paid")]


def test_both_languages_show_the_same_code() -> None:
    """The Russian pages differ from the English ones in their words alone."""
    pages = [("explanation/interview.md", "ru/interview.md")]
    pages += [(f"tutorial/{page.name}", f"ru/{page.name}") for page in sorted((DOCS / "ru").glob("[1-9]-*.md"))]
    assert len(pages) == 1 + len(list((DOCS / "tutorial").glob("*.md")))
    for ours, theirs in pages:
        assert _code(ours) == _code(theirs), theirs


def _code(page: str) -> list[str]:
    return re.findall(r"^```.*?^```", (DOCS / page).read_text(), flags=re.DOTALL | re.MULTILINE)
