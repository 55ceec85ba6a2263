"""The dashboard for Grafana: Grafana's own types know every part of it, Prometheus's tool every question in it."""

import copy
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.services.tools import promtool

BOARD: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "monitoring" / "effectonce-grafana.json").read_text(encoding="utf-8")
)
WIDTH = 24
"""Columns of Grafana's grid."""


def lost(board: Any, loaded: Any, place: str = "") -> Iterator[str]:
    """What did not come back, or came back as something else, when Grafana's types had read it."""
    if isinstance(board, dict):
        for name, value in board.items():
            if not isinstance(loaded, dict) or name not in loaded:
                yield f"{place}.{name}"
            else:
                yield from lost(value, loaded[name], f"{place}.{name}")
    elif isinstance(board, list) and isinstance(loaded, list) and len(board) == len(loaded):
        for at, (value, other) in enumerate(zip(board, loaded, strict=True)):
            yield from lost(value, other, f"{place}[{at}]")
    elif board != loaded:
        yield place


def read(board: dict[str, Any]) -> Any:
    """Load a dashboard as its types say, and write it again."""
    register_default_plugins()
    return json.loads(JSONEncoder().encode(Dashboard.from_json(copy.deepcopy(board))))


def test_grafanas_types_know_every_part_of_the_dashboard() -> None:
    assert list(lost(BOARD, read(BOARD))) == []


@pytest.mark.parametrize("place", ["title", "options", "gridPos"])
def test_a_part_that_grafana_does_not_know_is_noticed(place: str) -> None:
    broken = copy.deepcopy(BOARD)
    panel = broken["panels"][0]
    panel[f"{place}s"] = panel.pop(place)
    assert list(lost(broken, read(broken))) == [f".panels[0].{place}s"]


def test_panels_have_names_of_their_own_and_lie_beside_each_other() -> None:
    panels = BOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        x, y, width, height = (panel["gridPos"][name] for name in "xywh")
        cells = {(x + column, y + row) for column in range(width) for row in range(height)}
        assert x + width <= WIDTH
        assert not cells & taken, panel["title"]
        taken |= cells


def test_prometheus_understands_every_question(tmp_path: Path) -> None:
    asked = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    assert not [question for question in asked if re.search(r"\$(?!__)", question)]
    rules = [{"record": f"panel:{at}", "expr": question} for at, question in enumerate(asked)]
    file = tmp_path / "panels.yml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run([promtool(), "check", "rules", file], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
