"""The catalogue of mutants keeps up with the source."""

from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_what_a_mutant_changes_stands_there_once(mutant: Mutant) -> None:
    text = (ROOT / "src" / "effectonce" / mutant.file).read_text()
    assert text.count(mutant.old) == 1
    if mutant.file.endswith(".py"):
        compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
    assert all((ROOT / each).exists() for each in mutant.tests if each.startswith("tests/"))
