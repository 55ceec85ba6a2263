"""The protocol at wider bounds: minutes each, hours together. `test_protocol` is its daily form."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from tests.model.conftest import PLACES
from tests.model.games import Ending, Game
from tests.model.verdicts import holds
from tests.model.worlds import Budget

pytestmark = [pytest.mark.soak, pytest.mark.timeout(4 * 3600)]

GAMES: Final[Mapping[str, Mapping[str, Any]]] = {
    "kills 3, early 2, sleeps 1": {"budget": Budget(kills=3, early=2, sleeps=1)},
    "three workers, kills 2, early 2, sleeps 1": {"workers": 3, "budget": Budget(kills=2, early=2, sleeps=1)},
    "two ids, kills 2, early 1, sleeps 1": {"messages": 2, "budget": Budget(kills=2, early=1, sleeps=1)},
    "two ids, three workers, kills 1, early 1": {"messages": 2, "workers": 3, "budget": Budget(kills=1, early=1)},
    "three ids, three workers, kills 1": {"messages": 3, "workers": 3, "budget": Budget(kills=1)},
    "retries 2, kills 1, early 1, sleeps 1": {"budget": Budget(kills=1, early=1, sleeps=1, retries=2)},
    "retries 1, two ids, kills 1, sleeps 1": {"messages": 2, "budget": Budget(kills=1, sleeps=1, retries=1)},
    "lost retries, kills 2, early 1, retries 1": {"lost_retry": True, "budget": Budget(kills=2, early=1, retries=1)},
    "outages 2, refusals 2, kills 1, early 1": {"budget": Budget(kills=1, early=1, outages=2, refusals=2)},
    "one of each": {"budget": Budget(kills=1, early=1, sleeps=1, retries=1, failures=1, outages=1, refusals=1)},
    "same key, two ids, kills 1, sleeps 1": {
        "messages": 2,
        "ending": Ending.REPLACE_SAME_KEY,
        "budget": Budget(kills=1, sleeps=1),
    },
    "poison, two ids, kills 2, early 1, sleeps 1": {
        "messages": 2,
        "most": 2,
        "budget": Budget(kills=2, early=1, sleeps=1),
    },
}
LEAST: Final[Mapping[str, tuple[int, ...]]] = {
    "kills 3, early 2, sleeps 1": (57828, 18093, 89688, 21715),
    "three workers, kills 2, early 2, sleeps 1": (109282, 31028, 214143, 46495),
    "two ids, kills 2, early 1, sleeps 1": (164666, 60836, 312090, 85896),
    "two ids, three workers, kills 1, early 1": (43579, 25043, 98719, 43160),
    "three ids, three workers, kills 1": (27665, 18954, 85275, 53145),
    "retries 2, kills 1, early 1, sleeps 1": (50468, 31482, 54178, 29363),
    "retries 1, two ids, kills 1, sleeps 1": (20001, 13847, 17952, 11790),
    "lost retries, kills 2, early 1, retries 1": (22607, 10377, 25395, 8802),
    "outages 2, refusals 2, kills 1, early 1": (34562, 16949, 76398, 27582),
    "one of each": (538184, 278929, 836829, 363266),
    "same key, two ids, kills 1, sleeps 1": (57483, 33521, 237292, 137239),
    "poison, two ids, kills 2, early 1, sleeps 1": (254861, 100899, 421200, 127060),
}
"""The least number of worlds at each of the four places: what was counted, less a tenth."""


@pytest.mark.parametrize("name", GAMES)
def test_nothing_goes_wrong_at_wider_bounds(game: Callable[..., Game], place: str, name: str) -> None:
    holds(game(**GAMES[name]), at_least=LEAST[name][list(PLACES).index(place)])
