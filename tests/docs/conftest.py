"""Code of pages, run as it stands but for its addresses."""

import re
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import _state

DOCS = Path(__file__).parents[2] / "docs"
Runs = Callable[..., dict[str, Any]]


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    """`runs(page, ledger=...)` answers what the page's Python defines; its tasks stay out of other tests' apps.

    A block that begins with ``# before`` shows what is to go, and is left out.
    """
    shared, apps = set(_state._on_app_finalizers), []

    def run(page: str, *, ledger: str | None = None) -> dict[str, Any]:
        blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), flags=re.DOTALL | re.MULTILINE)
        code = "\n".join(block for block in blocks if not block.startswith("# before"))
        code = code.replace("sqlite:///", f"sqlite:///{tmp_path}/")
        code = re.sub(r'"(?:postgresql\+psycopg|redis)://localhost/\w+"', repr(ledger or "memory://pages"), code)
        file = tmp_path / f"{Path(page).stem.replace('-', '_')}.py"
        file.write_text(code)
        names = runpy.run_path(str(file))
        apps.append(names["app"])
        return names

    yield run
    for app in apps:
        app.close()
    _state._on_app_finalizers.intersection_update(shared)
