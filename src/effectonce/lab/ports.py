"""Free ports that nothing else is likely to take.

They lie below the range from which systems take ports for outgoing connections, so that a server that was killed
finds its port free when it comes back, and they are none of the standard ones.
"""

import errno
import random
import socket

STANDARD = frozenset({20000, 22122, 24224, 25565, 25672, 26379, 27017, 27018, 28015})
_RANGE = range(20001, 32000)
_dice = random.SystemRandom()


def free_port(*, but: frozenset[int] = frozenset()) -> int:
    """Return a TCP port of the loopback interface on which nobody listens now, none of *but*."""
    for _ in range(200):
        port = _dice.choice(_RANGE)
        if port not in STANDARD and port not in but and _is_free(port):
            return port
    message = "no free port between 20001 and 32000"
    raise OSError(errno.EADDRINUSE, message)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
