"""Whether a key came again with other arguments.

A fingerprint is a digest of the arguments, without those that stand at their default: a new parameter with a default
does not turn a message that is under way into another call. Beside the digest of all it has a short one for each of
the first eight arguments in the order of their names, so that an error can say which of the received ones differ,
though no value was ever stored.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from inspect import Parameter, Signature
from typing import Any, Final

from effectonce.domain.canonical import encode_argument, encode_text
from effectonce.domain.plain import TOO_DEEP, NotPlain
from effectonce.errors import KeyInvalid

_VERSION: Final = b"effectonce-args1"
_WHOLE: Final = 12
_EACH: Final = 4
_MOST: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprint:
    """A digest of arguments. An empty one was not taken, and equals every other.

    *names* and *each* belong together: the arguments that have a digest of their own. One that was read back from a
    ledger knows no names.
    """

    whole: bytes = b""
    each: tuple[bytes, ...] = ()
    names: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fingerprint):
            return NotImplemented
        return not self.whole or not other.whole or self.whole == other.whole

    __hash__ = None  # type: ignore[assignment]

    def to_bytes(self) -> bytes:
        """What a ledger keeps: nothing, or 12 bytes and 4 for each of up to eight arguments."""
        return self.whole + b"".join(self.each)

    @classmethod
    def from_bytes(cls, recorded: bytes) -> "Fingerprint":
        """Read what a ledger kept."""
        rest = range(_WHOLE, len(recorded), _EACH)
        return cls(recorded[:_WHOLE], tuple(recorded[at : at + _EACH] for at in rest))

    def names_that_differ(self, recorded: bytes) -> tuple[str, ...]:
        """The arguments of this call, among the first eight, that the recorded call did not have with this value."""
        if not recorded:
            return ()
        known = set(Fingerprint.from_bytes(recorded).each)
        return tuple(name for name, each in zip(self.names, self.each, strict=True) if each not in known)


def names_that_differ(received: Fingerprint, recorded: bytes) -> tuple[str, ...]:
    """The arguments of *received* that differ from what a ledger recorded."""
    return received.names_that_differ(recorded)


@dataclass(frozen=True, slots=True)
class _Argument:
    """One parameter. *default* is its default, encoded; None if it has none, or one that cannot be."""

    place: int
    name: str
    written: bytes
    default: bytes | None
    given_default: Any


class Fingerprinter:
    """Takes the fingerprints of one task's calls, over the parameters that count."""

    __slots__ = ("_arguments", "_spread", "_task")

    def __init__(self, signature: Signature, counts: Callable[[str], bool], *, task: str) -> None:
        parameters = list(enumerate(signature.parameters.values()))
        counted = [(place, each) for place, each in parameters if counts(each.name)]
        spread = {place for place, each in parameters if each.kind is Parameter.VAR_KEYWORD}
        self._task = task
        self._spread = next((place for place, _ in counted if place in spread), None)
        self._arguments = sorted(
            (_argument(place, each, open_=bool(spread)) for place, each in counted if place not in spread),
            key=lambda each: each.name,
        )

    def take(self, values: Sequence[Any]) -> Fingerprint:
        """The fingerprint of a call whose arguments are *values*; raises KeyInvalid if one cannot be encoded."""
        entries = [
            (each.name, each.written + written)
            for each in self._arguments
            if (written := self._encoded(each, values[each.place])) is not None
        ]
        if self._spread is not None and values[self._spread]:
            entries = sorted([*entries, *self._extra(values[self._spread])])
        return _digested(entries)

    def _encoded(self, argument: _Argument, value: Any) -> bytes | None:
        """Encode a value, None when it stands at its default."""
        if value is argument.given_default:
            return None
        written = self._encode(argument.name, value)
        return None if written == argument.default else written

    def _extra(self, kwargs: Mapping[str, Any]) -> Iterable[tuple[str, bytes]]:
        """Keyword arguments without a parameter count as parameters of their own, for they may become some."""
        for name, value in kwargs.items():
            yield name, encode_text(name) + self._encode(name, value)

    def _encode(self, name: str, value: Any) -> bytes:
        try:
            return encode_argument(value)
        except NotPlain as reason:
            why = f"it cannot be fingerprinted: {reason}; or name the arguments that matter in fingerprint="
            raise KeyInvalid(task=self._task, part=name, reason=why) from None
        except RecursionError:
            raise KeyInvalid(task=self._task, part=name, reason=TOO_DEEP) from None


NOT_TAKEN: Final = Fingerprint()


def _argument(place: int, parameter: Parameter, *, open_: bool) -> _Argument:
    """Look at a parameter. In an *open_* signature, one with ``**kwargs``, a keyword argument may have its name too."""
    name, default = parameter.name, parameter.default
    written = encode_text(name)
    if open_ and parameter.kind in {Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL}:
        written = b"/" + written
    if parameter.kind is Parameter.VAR_POSITIONAL:
        default = ()
    if default is Parameter.empty:
        return _Argument(place, name, written, None, default)
    try:
        return _Argument(place, name, written, encode_argument(default), default)
    except (NotPlain, RecursionError):
        return _Argument(place, name, written, None, default)


def _digested(entries: Sequence[tuple[str, bytes]]) -> Fingerprint:
    first = entries[:_MOST]
    return Fingerprint(
        blake2b(b"".join([entry for _, entry in entries]), digest_size=_WHOLE, person=_VERSION).digest(),
        tuple([blake2b(entry, digest_size=_EACH, person=_VERSION).digest() for _, entry in first]),
        tuple([name for name, _ in first]),
    )
