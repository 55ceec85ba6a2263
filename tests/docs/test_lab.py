"""The page of the lab names what is tried, as the lab itself says it."""

import re
from pathlib import Path

import pytest

from effectonce.lab.contenders import CONTENDERS, OURS
from effectonce.lab.results.markdown import rewritten
from effectonce.lab.results.report import Report
from effectonce.lab.scenarios import SCENARIOS
from effectonce.lab.trials.verdict import WORDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/lab.md").read_text()
RESULTS = Report.from_json((ROOT / "docs/reference/lab-results.json").read_text())


def test_every_scenario_stands_in_the_reference_with_its_question() -> None:
    listed = re.findall(r"^\| `([a-z-]+)` \| (.*?) \| (.*?) \|$", PAGE.partition("## Scenarios")[2], re.MULTILINE)
    assert listed == [(each.name, each.question, each.right) for each in SCENARIOS.values()]


def test_every_column_and_every_word_of_a_verdict_is_explained() -> None:
    assert [each.title for each in CONTENDERS.values() if f"| {each.title} |" not in PAGE] == []
    assert [word for word, meaning in WORDS.items() if f"| {word} | {meaning} |" not in PAGE] == []


@pytest.mark.parametrize("page", ["README.md", "docs/reference/lab-results.md"])
def test_the_tables_say_what_was_measured(page: str) -> None:
    text = (ROOT / page).read_text()
    assert "<!-- lab: " in text
    assert rewritten(text, RESULTS) == text


def test_what_was_measured_has_every_scenario_and_we_are_right_in_each() -> None:
    assert RESULTS.scenarios == list(SCENARIOS)
    ours = [RESULTS.row(name, OURS) for name in SCENARIOS]
    assert [row["words"] if row else None for row in ours] == [["once"]] * len(SCENARIOS)
