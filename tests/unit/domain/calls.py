"""Short ways to name a call's effect, shared by the tests of keys and fingerprints."""

import inspect
import re
from collections.abc import Callable
from typing import Any

from effectonce.domain.fingerprints import Fingerprint
from effectonce.domain.keys import Key, KeySource
from effectonce.domain.policies import Leased, Policy

TASK = "shop.charge"


def source(body: Callable[..., Any], policy: Policy) -> KeySource:
    """The key source of a task with this body."""
    return KeySource.compile(policy, TASK, inspect.signature(body))


def key_of(made: KeySource, *args: Any, headers: dict[str, Any] | None = None, **kwargs: Any) -> Key:
    """The key of a call with these arguments, *headers* being all that is not an argument."""
    nothing = {"generation": None, "tick": None, "at_call": None, "parent": None, "message_id": None, "http": None}
    return made.key(args, kwargs, **{"namespace": "", **nothing, **(headers or {})})


def key_for(template: Any, value: Any) -> Key:
    """The key of a task whose one parameter is ``part``."""
    return key_of(source(one_part, Leased(template)), value)


def print_of(body: Callable[..., Any], *args: Any, policy: Policy | None = None, **kwargs: Any) -> Fingerprint:
    """The fingerprint of a call of *body*."""
    return source(body, policy or Leased()).fingerprint(args, kwargs)


def one_part(part: Any) -> None:
    """The body of a task with one parameter."""


def named(value: object) -> str:
    """A value as part of a test's name, which is the same in each process."""
    return re.sub(r" at 0x\w+", "", repr(value))
