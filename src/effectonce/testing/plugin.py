"""The pytest plugin: the fixture ``effects``, and the marker of the same name.

It is loaded in every test run where effectonce is installed, so it imports nothing but pytest until a test asks for it.
"""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from effectonce.testing.effects import Effects


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", "effects(database=None, ignore=()): what effects.prove_once compares in these tests by default"
    )


@pytest.fixture
def effects_database() -> Any:
    """The database that `effects` compares by default; override it in a conftest."""
    return None


@pytest.fixture
def effects(request: pytest.FixtureRequest, effects_database: Any) -> "Effects":
    """Proves that a task takes effect once: ``effects.prove_once(task, args, database=engine)``."""
    from effectonce.testing.effects import Effects  # noqa: PLC0415 - see above

    marker = request.node.get_closest_marker("effects")
    told = dict(marker.kwargs) if marker is not None else {}
    return Effects(database=told.get("database", effects_database), ignore=told.get("ignore", ()))
