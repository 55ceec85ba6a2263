"""System checks: what of the settings and tasks cannot work, told before a worker runs."""


def register_all() -> None:
    """Register them."""
