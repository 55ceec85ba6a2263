"""Guarded tasks in a unit test that has no store."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from effectonce.errors import OutsideEffect

if TYPE_CHECKING:
    from effectonce.app.extension import EffectOnce


@dataclass(frozen=True, slots=True)
class Bypass:
    """The calls of *once* are not guarded here; *session* is what their bodies get."""

    once: "EffectOnce"
    session: Any

    def opening(self) -> AbstractContextManager[Any]:
        """The session; the test commits it or not."""
        if self.session is None:
            raise OutsideEffect(face="session: it was left out of bypassed(session=...), so once.session")
        return nullcontext(self.session)


_bypass: ContextVar[Bypass | None] = ContextVar("effectonce_bypass", default=None)


def bypass_of(once: "EffectOnce") -> Bypass | None:
    """What holds for the calls of this app in this thread."""
    found = _bypass.get()
    return found if found is not None and found.once is once else None


@contextmanager
def bypassing(once: "EffectOnce", session: Any) -> Iterator[None]:
    """A context whose guarded calls run their bodies and nothing else."""
    token = _bypass.set(Bypass(once, session))
    try:
        yield
    finally:
        _bypass.reset(token)
