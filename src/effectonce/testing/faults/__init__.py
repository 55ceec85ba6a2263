"""Where a body touches the outside, library by library.

Each module puts a watch into one library, if that is loaded, and takes it out again. A library that comes later in the
body itself is not watched in that run; the first clean run loads it, so the ones after it are.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from effectonce.testing.faults import django, files, http, messages, redis, sql


@contextmanager
def watched() -> Iterator[None]:
    """Watch every library that is loaded now."""
    with ExitStack() as stack:
        for library in (sql, django, redis, http, messages, files):
            stack.enter_context(library.watched())
        yield
