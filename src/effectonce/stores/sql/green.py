"""psycopg under eventlet.

psycopg waits for the server in C, unless gevent has patched `select`; eventlet's patch it does not notice. Then one
statement that waits stops every green thread of the worker, also the one whose commit it waits for, and a relay that
listens stops them for good. So psycopg is told to wait with the patched `select`.
"""

import select
import sys


def let_others_run() -> None:
    """Let other green threads run while psycopg waits; nothing where eventlet has not patched this process."""
    waiting = sys.modules.get("psycopg.waiting")
    if waiting is not None and is_patched():
        waiting.wait = waiting.wait_select  # type: ignore[attr-defined]


def is_patched() -> bool:
    """Whether `select` is eventlet's."""
    return select.select.__module__.startswith("eventlet")
