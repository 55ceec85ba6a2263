"""The four places at which every game is played: two policies, two brokers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.model.brokers import RabbitMQ, Redis
from tests.model.games import Game

PLACES = {
    "leased-redis": {"transactional": False, "broker": Redis()},
    "leased-rabbitmq": {"transactional": False, "broker": RabbitMQ()},
    "transactional-redis": {"transactional": True, "broker": Redis()},
    "transactional-rabbitmq": {"transactional": True, "broker": RabbitMQ()},
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> str:
    """The name of the place."""
    return str(request.param)


@pytest.fixture
def game(place: str) -> Callable[..., Game]:
    """Makes a game at this place."""
    options: dict[str, Any] = PLACES[place]
    return partial(Game, **options)
