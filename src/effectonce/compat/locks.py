"""Locks by name over the place where leases live."""

from hashlib import blake2b
from typing import Any, Final

from effectonce.errors import NotInstalled

_PERSON: Final = b"effectonce-cmpt1"


class Leases:
    """The locks of one app; raises NotInstalled where *task*'s app has no EffectOnce, LedgerUnavailable when away."""

    def __init__(self, app: Any, *, task: str) -> None:
        once = getattr(app, "effectonce", None)
        if once is None:
            raise NotInstalled(task=task)
        self._store = once.leases

    def lock(self, key: str, holder: str, seconds: float) -> str:
        """Let *holder* have *key* for *seconds*, if nobody has it; answers who has it now."""
        return str(self._store.reserve(_name(key), holder, seconds))

    def unlock(self, key: str, holder: str) -> bool:
        """End it, if it is *holder*'s; answers whether it was."""
        return bool(self._store.give_back(_name(key), holder))


def _name(key: str) -> bytes:
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16, person=_PERSON).digest()


def imported(path: str) -> Any:
    """What a dotted path names."""
    from importlib import import_module  # noqa: PLC0415 - only who names a backend of their own

    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)
