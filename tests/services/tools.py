"""Programs that tests run and that are no servers: a browser, and Prometheus's own checker of rules."""

from pathlib import Path

from effectonce.lab.servers.faults import ServiceMissing
from tests.services import programs


def chromium() -> Path:
    """Return the browser, installing it if need be."""
    return _tool("chromium", package="chromium")


def promtool() -> Path:
    """Return Prometheus's tool, installing it if need be."""
    return _tool("promtool", package="prometheus")


def _tool(name: str, *, package: str) -> Path:
    found = programs.find(name)
    if found:
        return found
    reason = programs.install_debian(package)
    found = programs.find(name)
    if found:
        return found
    message = f"no {name}: install {package} ({reason})"
    raise ServiceMissing(message)
