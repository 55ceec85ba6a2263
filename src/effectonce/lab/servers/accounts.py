"""The account that a server runs as which refuses to run as root."""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAMES = ("postgres", "nobody")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user and its first group."""

    uid: int
    gid: int


def plain_account() -> Account | None:
    """Return an account without rights if we are root; None if we are not."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = next(known[name] for name in NAMES if name in known)
    return Account(uid=entry.pw_uid, gid=entry.pw_gid)


def running_as(account: Account | None) -> dict[str, Any]:
    """Return the arguments that make ``subprocess`` start a program as *account*."""
    if account is None:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": []}


def own_files(account: Account | None, *paths: Path) -> None:
    """Give files to the account that the server runs as."""
    if account is not None:
        for path in paths:
            os.chown(path, account.uid, account.gid)
