"""What can make a Celery task act twice or never, each made to happen; importing this fills the list."""

from typing import Final

from effectonce.lab.scenarios import callers, deaths, delivery, messages, schedules, stores
from effectonce.lab.scenarios.scenario import REGISTER, Scenario

MODULES: Final = (delivery, deaths, callers, messages, stores, schedules)
SCENARIOS: Final[dict[str, Scenario]] = {
    each.name: each for module in MODULES for each in REGISTER if each.play.__module__ == module.__name__
}
"""By name, in the order of the table."""
