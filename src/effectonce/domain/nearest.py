"""Which name somebody meant who wrote another one."""

import difflib
from collections.abc import Sequence


def nearest(name: str, names: Sequence[str]) -> str:
    """Say which of *names* may be meant by *name*, or which there are."""
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"there are: {', '.join(names)}" if names else "it has none"
