"""Where entries live: in memory, in Redis, in SQL databases. A store does I/O and decides nothing."""

import os
from typing import Final

BORN_IN: Final = os.getpid()
"""The process that loaded this library first, as a worker's parent does with the application: a child knows by it
that connections which it finds in a pool may be its parent's."""
