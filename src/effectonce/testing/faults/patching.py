"""Putting a watch over a method, and taking it away."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from effectonce.testing.attempts import Touch, touched

Describe = Callable[..., Touch]


@contextmanager
def patched(owner: Any, name: str, describe: Describe) -> Iterator[None]:
    """Make each call of ``owner.name`` a touch; *describe* gets the attempt and the call's arguments."""
    plain = vars(owner).get(name)
    if plain is None:
        yield
        return

    @wraps(plain)
    def watched(*args: Any, **kwargs: Any) -> Any:
        return touched(lambda attempt: describe(attempt, *args, **kwargs), lambda: plain(*args, **kwargs))

    setattr(owner, name, watched)
    try:
        yield
    finally:
        setattr(owner, name, plain)


def shortened(text: str, length: int = 100) -> str:
    """One line of at most *length* characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"
