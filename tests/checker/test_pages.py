"""Each rule has a page, and the page's own examples are its test."""

import re
from pathlib import Path

import pytest

from effectonce.checker.findings import Family
from effectonce.checker.options import Options
from effectonce.checker.pages import page
from effectonce.checker.rules import all_rules
from effectonce.checker.run import check
from tests.checker.examples import PAGES, Example, examples, pages

RULES = {rule.code: rule for rule in all_rules()}
PARTS = ("What it finds", "Why it hurts", "How to mend it", "When it is wrong", "Bad", "Good")
FAMILIES = {
    "1": Family.KEYS,
    "2": Family.ACKS,
    "3": Family.LOCKS,
    "4": Family.DATABASE,
    "5": Family.SENDING,
    "6": Family.SCHEDULES,
    "7": Family.DEPLOYMENT,
    "9": Family.FILES,
}
BAD = [pytest.param(code, each, id=f"{code}-{n}") for code in pages() for n, each in enumerate(examples(code, "Bad"))]
GOOD = [pytest.param(code, each, id=f"{code}-{n}") for code in pages() for n, each in enumerate(examples(code, "Good"))]


def test_every_rule_has_its_page_and_every_page_its_rule() -> None:
    assert pages() == sorted(RULES)


@pytest.mark.parametrize("code", sorted(RULES))
def test_a_page_names_its_rule_and_has_all_parts(code: str) -> None:
    text = page(code)
    assert text is not None
    rule = RULES[code]
    assert text.startswith(f"# {code} {rule.name}\n\n{rule.family.value}, {rule.severity.value}. {rule.summary}.\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == list(PARTS)


@pytest.mark.parametrize("code", sorted(RULES))
def test_a_page_has_bad_and_good_examples(code: str) -> None:
    assert list(examples(code, "Bad"))
    assert list(examples(code, "Good"))


@pytest.mark.parametrize("code", sorted(RULES))
def test_the_hundred_of_a_code_is_its_family(code: str) -> None:
    assert RULES[code].family is FAMILIES[code[2]]


@pytest.mark.parametrize(("code", "example"), BAD)
def test_the_bad_example_of_a_page_is_found(code: str, example: Example, tmp_path: Path) -> None:
    example.write(tmp_path)
    found = check([tmp_path], Options(root=tmp_path))
    assert code in {finding.code for finding in found}


@pytest.mark.parametrize(("code", "example"), GOOD)
def test_nothing_at_all_is_found_in_the_good_example_of_a_page(code: str, example: Example, tmp_path: Path) -> None:
    example.write(tmp_path)
    found = check([tmp_path], Options(root=tmp_path))
    assert [(finding.code, finding.line, finding.message) for finding in found] == [], code


def test_the_index_lists_every_rule() -> None:
    text = (PAGES / "index.md").read_text()
    rows = re.findall(r"^\| \[(EO\d+)\]\(\1\.md\) \| `(.*?)` \| (\w+) \| (.*?) \|$", text, re.MULTILINE)
    assert rows == [(rule.code, rule.name, rule.severity.value, rule.summary) for rule in all_rules()]
