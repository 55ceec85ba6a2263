"""What is wrong with an option of a policy, said so that the next try is right."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from effectonce.domain.nearest import nearest

_ELSEWHERE: Final = {
    "lease": "Leased or Exclusive",
    "until": "Unique",
    "on_unknown": "Leased",
    "reconcile": "Leased",
    "allow_escape": "Transactional",
}

_CHOICES: Final[Mapping[str, tuple[object, ...]]] = {
    "on_duplicate": ("replay", "raise"),
    "on_busy": ("defer", "wait", "skip", "raise", "follow"),
    "on_unknown": ("retry", "hold", "skip"),
    "mode": ("enforce", "observe", "off"),
    "result": (True, False, None),
    "key_at_call": (True, False),
    "allow_escape": (True, False),
}


def unknown_option(policy: str, name: str, options: Sequence[str]) -> str:
    """Say what may be meant by an option that there is not."""
    if name in _ELSEWHERE:
        return f"{policy} has no option {name!r}; {_ELSEWHERE[name]} has"
    return f"{policy} has no option {name!r}; {nearest(name, options)}"


def pointless_option(policy: str, name: str) -> str:
    """Say why a policy has no use for an option that others share."""
    why = "lets the next message run when one has finished" if policy == "Exclusive" else "keeps no entry"
    return f"{policy} {why}, so {name}= has nothing to say; leave it out, or use Leased"


def choice_faults(option: str, value: object) -> Iterable[str]:
    """Say what is wrong with *value* for an option that has a few fixed ones."""
    choices = _CHOICES.get(option)
    if choices is None or any(value is one or (isinstance(value, str) and value == one) for one in choices):
        return
    listed = ", ".join(map(repr, choices))
    if isinstance(value, str) and isinstance(choices[0], str):
        yield f"{option}={value!r}: {nearest(value, [str(one) for one in choices])}"
    else:
        yield f"{option}={value!r}: it must be one of {listed}"


def value_faults(option: str, value: object) -> Iterable[str]:
    """Say what is wrong with *value* for an option of seconds, counts, names or exceptions."""
    expected = _EXPECTED.get(option)
    if expected is not None and not expected[1](value):
        yield f"{option}={value!r}: it must be {expected[0]}"


def name_faults(fingerprint: object, names: Sequence[str]) -> Iterable[str]:
    """Say what is wrong with the option ``fingerprint`` of a task whose parameters are *names*."""
    if fingerprint is None or fingerprint == "all":
        return
    if isinstance(fingerprint, tuple) and all(isinstance(name, str) for name in fingerprint):
        for name in fingerprint:
            if name not in names:
                yield f"fingerprint: the task has no parameter {name!r}; {nearest(name, names)}"
        return
    meant = f" such as ({fingerprint!r},)" if isinstance(fingerprint, str) else ""
    yield f"fingerprint={fingerprint!r}: it must be 'all', None, or a tuple of parameter names{meant}"


def _is_name(value: object) -> bool:
    return value is None or (isinstance(value, str) and bool(value) and value.isprintable())


def _is_span(value: object) -> bool:
    if isinstance(value, timedelta):
        return value > timedelta()
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf


def _is_life(value: object) -> bool:
    return value is None or _is_span(value)


def _is_until(value: object) -> bool:
    return value in ("done", "started") if isinstance(value, str) else _is_span(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_question(value: object) -> bool:
    return value is None or (callable(value) and not isinstance(value, type))


def _are_exceptions(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(one, type) and issubclass(one, Exception) for one in value)


_EXPECTED: Final[Mapping[str, tuple[str, Callable[[object], bool]]]] = {
    "scope": ("a name that is not empty", _is_name),
    "keep": ("seconds above 0, a timedelta, or None for ever", _is_life),
    "lease": ("seconds above 0, or a timedelta", _is_span),
    "max_takeovers": ("a whole number of at least 1", _is_count),
    "reconcile": ("a callable of effect and step, or None", _is_question),
    "remember": ("a tuple of exception classes", _are_exceptions),
    "until": ("'done', 'started', seconds above 0, or a timedelta", _is_until),
}
