"""A key cannot be given to a canvas as a whole.

Celery would copy it to every member of a group or chord, and to the first step of a chain alone. So it is refused
where that happens: the three ``apply_async`` of Celery's canvas are wrapped once a process, by a check that looks at
the one option and passes everything on.
"""

from functools import wraps
from typing import Any

from celery import canvas

from effectonce.errors import KeyInvalid

_MARK = "_effectonce_checks_keys"


def refuse_keys_on_wholes() -> None:
    """Wrap the canvas; a second call does nothing."""
    for kind in (canvas.group, canvas._chain, canvas._chord):  # noqa: SLF001 - listed in test_celery_names
        plain = kind.apply_async
        if not hasattr(plain, _MARK):
            kind.apply_async = _checking(plain, kind.__name__.strip("_"))


def _checking(plain: Any, kind: str) -> Any:
    @wraps(plain)
    def apply_async(self: Any, *args: Any, **options: Any) -> Any:
        if "effect_key" in options:
            reason = f"a {kind} as a whole has no key; give it to a member with .set(effect_key=...)"
            raise KeyInvalid(task=kind, part="effect_key", reason=reason)
        return plain(self, *args, **options)

    setattr(apply_async, _MARK, True)
    return apply_async
