"""What the how-to pages show does what they say."""

import re
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from effectonce import EffectKeyReused
from effectonce.cli.effectonce import main
from tests.docs.conftest import DOCS, Runs


def test_the_keys_of_the_page_mean_what_it_says(runs: Runs, sqlite_url: str) -> None:
    shown = runs("how-to/choose-a-key.md", ledger=sqlite_url)
    charge, send_mail = shown["charge"], shown["send_mail"]
    assert [charge(7, 100), charge(order_id=7, amount=100)] == ["charged 100"] * 2
    with pytest.raises(EffectKeyReused):
        charge(7, 999)
    assert [send_mail(1, "welcome"), send_mail(1, "invoice")] == ["welcome", "invoice"]
    assert [shown["fetch"]("acme"), shown["rebuild"](), shown["rebuild"]()] == ["acme", "rebuilt", "rebuilt"]


def test_a_tenant_is_part_of_every_key(runs: Runs) -> None:
    receipt = runs("how-to/many-tenants.md")["receipt"]
    keys = [receipt.apply((7,), headers={"tenant": name}).get() for name in ("acme", "zenith", "acme")]
    assert len(set(keys)) == 2
    assert keys[0] == keys[2]


def test_each_way_to_adopt_a_body_takes_effect_once(runs: Runs) -> None:
    shown = runs("how-to/adopt-a-body.md")
    engine = shown["engine"]
    with engine.begin() as connection:
        connection.execute(sa.text("create table imported (row integer)"))

    def rows() -> list[int]:
        with engine.connect() as connection:
            return list(connection.execute(sa.text("select row from imported order by row")).scalars())

    assert [shown["import_file"]("a", [1, 2]), shown["import_file"]("a", [1, 2])] == [2, 2]
    assert rows() == [1, 2]
    shown["order"](3)
    shown["order"](3)
    assert rows() == [1, 2, 3]
    shown["app"].conf.task_always_eager = True
    shown["nightly"]("monday", [4, 5])
    shown["nightly"]("monday", [4, 5])
    assert rows() == [1, 2, 3, 4, 5]


def test_a_lock_made_by_hand_becomes_a_policy(runs: Runs) -> None:
    shown = runs("how-to/move-from-hand-made-locks.md")
    assert [shown["charge"](7), shown["charge"](7)] == ["paid 7", "paid 7"]


@pytest.mark.parametrize(
    ("page", "language", "name", "codes"),
    [
        ("kubernetes.md", "yaml", "shop.yaml", set()),
        ("move-from-hand-made-locks.md", "python", "tasks.py", {"EO101", "EO301", "EO302"}),
    ],
)
def test_the_checker_says_the_same_as_the_page(
    page: str, language: str, name: str, codes: set[str], tmp_path: Any
) -> None:
    """Nothing of the manifests; of the lock made by hand what the page says of it."""
    found = re.search(rf"^```{language}\n(.*?)^```", (DOCS / "how-to" / page).read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    (tmp_path / name).write_text(found[1])
    said = CliRunner().invoke(main, ["check", str(tmp_path)])
    assert set(re.findall(r"EO\d{3}", said.output)) == codes, said.output
