"""Django's open transactions, whatever database they are in, and what is called after their commit."""

from collections.abc import Callable

from django.db import connections


def has_block(alias: str) -> bool:
    """Whether this thread is inside an ``atomic`` on *alias* that is not the one that wraps a test case."""
    blocks = connections[alias].atomic_blocks
    return any(not getattr(block, "_from_testcase", False) for block in blocks)


def hook_of_open_block() -> Callable[[Callable[[], None]], None] | None:
    """What has something called after the commit of the block that is open here; None: there is none.

    Where blocks are open on several aliases it is the last one's, in the order of ``DATABASES``.
    """
    opened = [connection for connection in connections.all(initialized_only=True) if has_block(connection.alias)]
    if not opened:
        return None
    connection = opened[-1]
    return lambda call: connection.on_commit(call, robust=True)
