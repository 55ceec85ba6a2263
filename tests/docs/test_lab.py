"""The page of the lab names what is tried, as the lab itself says it."""

import re
from pathlib import Path

from effectonce.lab.contenders import CONTENDERS
from effectonce.lab.scenarios import SCENARIOS
from effectonce.lab.trials.verdict import WORDS

PAGE = (Path(__file__).parents[2] / "docs/reference/lab.md").read_text()


def test_every_scenario_stands_in_the_reference_with_its_question() -> None:
    listed = re.findall(r"^\| `([a-z-]+)` \| (.*?) \| (.*?) \|$", PAGE.partition("## Scenarios")[2], re.MULTILINE)
    assert listed == [(each.name, each.question, each.right) for each in SCENARIOS.values()]


def test_every_column_and_every_word_of_a_verdict_is_explained() -> None:
    assert [each.title for each in CONTENDERS.values() if f"| {each.title} |" not in PAGE] == []
    assert [word for word, meaning in WORDS.items() if f"| {word} | {meaning} |" not in PAGE] == []
