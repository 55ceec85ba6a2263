"""Libraries of the user's: looked at where they are loaded, and never loaded for our sake."""

import sys
from typing import Any


def loaded(name: str) -> Any:
    """A module if it is loaded, else None: nothing is imported for the sake of a watch."""
    return sys.modules.get(name)
