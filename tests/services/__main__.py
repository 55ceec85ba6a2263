"""Run the servers of the tests by hand: ``python -m tests.services``.

Prints the variables that make a test run use these servers, and keeps them until Ctrl-C.
With arguments, runs them as a command with these variables set, and ends with it.
"""

import os
import signal
import subprocess
import sys

from effectonce.lab.servers.faults import ServiceFailed, ServiceMissing
from tests.services.fleet import Fleet


def main(command: list[str]) -> int:
    """Start all servers, then wait, or run *command*."""
    fleet = Fleet()
    try:
        servers = (fleet.redis(), fleet.postgresql(), fleet.mariadb(), fleet.rabbitmq())
        variables = {server.variable: server.url for server in servers}
        if command:
            return subprocess.run(command, check=False, env={**os.environ, **variables}).returncode
        for name, value in variables.items():
            print(f"export {name}={value}", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        return 130
    except (ServiceMissing, ServiceFailed) as fault:
        print(fault, file=sys.stderr)
        return 1
    finally:
        fleet.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
