"""The commands: ``celery -A proj once ...`` and the program ``effectonce``.

A terminal gets tables, a pipe gets plain text, ``--json`` gives JSON. Exit codes: 0 done; 1 it could not be done, or a
probe says no; 2 bad use, a missing app among it; 3 nothing found.
"""
