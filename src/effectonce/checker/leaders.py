"""Schedulers that elect one beat of several."""

import re
from typing import Final

from effectonce.checker.deployment.places import Process
from effectonce.checker.survey import Survey

_LEADER: Final = re.compile(r"redbeat|single|leased|multibeat|effectonce|^once$", re.IGNORECASE)


def has_leader(process: Process, survey: Survey) -> bool:
    """Tell whether the command line or the settings choose such a scheduler."""
    given = process.option("-S", "--scheduler")
    if given is not None:
        return _LEADER.search(given) is not None
    chosen = survey.configuration.value("beat_scheduler")
    return isinstance(chosen, str) and _LEADER.search(chosen) is not None
