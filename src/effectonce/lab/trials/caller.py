"""A caller in a process of its own: ``python -m effectonce.lab.trials.caller TASK ARGS...``."""

import sys

from effectonce.lab.trials.app import open_laboratory
from effectonce.lab.trials.place import Place

if __name__ == "__main__":
    task, *words = sys.argv[1:]
    open_laboratory(Place.from_environment()).tasks[task].delay(*words)
