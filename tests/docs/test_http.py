"""The page on HTTP names each option and each problem that there is."""

import inspect
import re
from pathlib import Path

import pytest

from effectonce.domain.idempotency import Meaning, meaning_of
from effectonce.http import answers
from effectonce.http.desk import Terms

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "http-idempotency-keys.md").read_text()


def test_every_option_stands_on_the_page() -> None:
    part = PAGE.partition("## Options")[2].partition("## ")[0]
    assert set(re.findall(r"^\| `(\w+)`", part, flags=re.MULTILINE)) == set(Terms.__dataclass_fields__)


def test_every_problem_stands_on_the_page() -> None:
    names = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)", ', inspect.getsource(answers)))
    assert set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", PAGE.partition("## Problems")[2].partition("Records")[0])) == names


@pytest.mark.parametrize("status", range(200, 600))
def test_the_page_says_what_a_status_means(status: int) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| 401,"))
    free = status >= 500 or str(status) in re.findall(r"\d+", row.partition("5xx")[0])
    refused = Meaning.REFUSED if status >= 400 else Meaning.DONE
    assert meaning_of(status) is (Meaning.FREE if free else refused)
