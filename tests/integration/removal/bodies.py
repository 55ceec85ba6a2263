"""What the tasks of the project do, with the library and without it."""

import os
import time
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("DRILL_FOLDER", "."))


def took(task: str, order: str) -> str:
    """Note that a body ran; one short write with O_APPEND is whole."""
    with (FOLDER / "bodies").open("a") as file:
        file.write(f"{task}:{order} {os.getpid()}\n")
    return f"{task} {order}"


def ship_order(task: Any, order: str) -> str:
    """A body that hangs for the order "hangs", and is retried for the order "again" until it may go on."""
    took("ship", order)
    while order == "hangs" and not (FOLDER / "go-on").exists():
        time.sleep(0.05)
    if order == "again" and not (FOLDER / "go-on").exists():
        raise task.retry(countdown=1, max_retries=100)
    return f"ship {order}"
