"""Figures in the documentation are those of `bench/results`, and arithmetic over them is right."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench.plan import imbalance, plan
from bench.plots import DOCS, PAGES, PLOTS, filled, plot
from bench.report import RESULTS, interleaved, quantile, ratio


def _results() -> dict[str, object]:
    return {file.stem: json.loads(file.read_text()) for file in RESULTS.glob("*.json")}


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_of_a_page_are_what_the_results_say(page: str) -> None:
    """`effectonce bench plots` writes them."""
    text = Path(DOCS, "explanation", f"{page}.md").read_text()
    assert text.count("<!-- table ") == text.count("<!-- end -->") > 0
    assert filled(text, _results()) == text


def test_a_table_follows_its_result() -> None:
    text = "# Page\n\n<!-- table mapping -->\nold\n<!-- end -->\n"
    row = {name: {"median": 2.0, "least": 1.0, "most": 3.0} for name in ("one server", "two servers", "ratio")}
    assert "Not measured yet." in filled(text, {})
    assert "| 2 (1 to 3) | 2 (1 to 3) | 2.00 (1.00 to 3.00) |" in filled(text, {"mapping": {"rows": [row]}})


def test_every_plot_that_has_a_result_lies_beside_the_pages() -> None:
    drawn = {name for name, bars in PLOTS.items() if bars(_results())}
    assert drawn == {file.stem.removeprefix("bench-") for file in Path(DOCS, "pictures").glob("bench-*.svg")}


def test_a_plot_has_a_bar_and_a_whisker_for_each_row() -> None:
    drawn = ET.fromstring(plot([("a < b", 0.5, 0.4, 0.6, "0.50"), ("c", 1.0, 0.9, 2.0, "1.00")]))  # noqa: S314 - ours
    names = [each.text for each in drawn if each.tag.endswith("text")]
    assert "a < b" in names
    bars = [float(each.attrib["width"]) for each in drawn if each.attrib.get("fill") == "#4c78a8"]
    assert bars[1] == pytest.approx(2 * bars[0])


def test_sides_are_measured_in_turns_and_compared_round_by_round() -> None:
    order: list[str] = []

    def side(name: str, value: float) -> float:
        order.append(name)
        return value

    taken = interleaved({"a": lambda: side("a", 2.0), "b": lambda: side("b", 1.0)}, rounds=2)
    assert "".join(order) == "abbaabba"
    assert ratio(taken, of="a", to="b") == {"median": 2.0, "least": 2.0, "most": 2.0}
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0


def test_a_plan_multiplies_what_was_measured() -> None:
    measured = {"effects_per_s": 400, "leased_per_s": 900, "log_bytes": 500, "bare_log_bytes": 100, "entry_bytes": 250}
    made = plan(10_000, measured)
    assert (made["postgresql_servers"], made["redis_servers"]) == (25, 12)
    assert made["log_mb_per_s"] - made["log_mb_per_s_without"] == pytest.approx(4.0)
    assert made["entries_kept"] == 10_000 * 86_400 * 7
    assert made["room_gb"] == pytest.approx(made["entries_kept"] * 250 / 1e9)


def test_many_scopes_spread_more_evenly_than_few() -> None:
    assert imbalance(10_000, 8, seed=1) < imbalance(10, 8, seed=1) <= 8
    assert imbalance(10, 1, seed=1) == pytest.approx(1.0)
