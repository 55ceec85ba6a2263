"""``celery beat -S once``: as many beats as one likes, each tick once.

`scheduler` is what Celery starts; `reign` is what it does while it leads; `book`, `database` and `redbeat` are the
schedules that it wraps; `entries` reads their instants.
"""
