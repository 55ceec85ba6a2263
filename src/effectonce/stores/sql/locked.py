"""The signal that somebody holds what was wanted."""


class Locked(Exception):
    """The database, the row or the key is held; never seen outside the store."""
