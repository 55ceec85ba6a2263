"""Which effect a call means.

A key is scope and text; namespace, generation and the tick of a schedule are part of it. It comes from the task's
template or callable over the arguments, from the message's id (`MESSAGE`), or, when the task names none, from the
call: ``effect_key=``, the HTTP request's key, the tick, the parent's key and the ordinal of the send, in this order.
Nothing in it is drawn by lot, so every process and every attempt comes to the same one.

The digest names the effect. It is taken over typed, length-prefixed parts, each origin under its own letter; never over
the readable text, which is for people.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from inspect import Signature
from typing import Any, Final, Literal
from uuid import UUID

from effectonce.domain.arguments import Arguments
from effectonce.domain.callables import KeyCallable
from effectonce.domain.canonical import EMPTY, encode_optional, encode_part, encode_text
from effectonce.domain.fingerprints import NOT_TAKEN, Fingerprint, Fingerprinter
from effectonce.domain.plain import EMPTY_PART, TOO_DEEP, NotPlain, kind
from effectonce.domain.policies import Message, Policy
from effectonce.domain.readable import readable, readable_text
from effectonce.domain.recognition import Unreadable, read_part, read_text, split, written
from effectonce.domain.templates import Template, read_template
from effectonce.errors import KeyInvalid, KeyMissing

_VERSION: Final = b"effectonce-key-1"
_STEP_VERSION: Final = b"effectonce-step1"
_LONGEST: Final = 200
"""Characters of a readable key; the rest of a longer one is replaced by its digest."""

_LETTERS: Final = {"message": b"M", "http": b"H", "tick": b"K", "parent": b"P"}
"""With T (template), C (callable) and A (at the call): where a key comes from is part of what it names."""

_UUID_MASK: Final = 0xF << 76 | 0x3 << 62
_UUID_8: Final = 0x8 << 76 | 0x2 << 62
"""Version 8 and variant of RFC 9562: a UUID made in a way of one's own."""

Named = tuple[str, bytes]
"""A key's readable text and its bytes, the first of which is the letter of its origin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The name of one effect. *digest*, 16 bytes, is what a ledger knows it by; *text* what people do."""

    digest: bytes
    namespace: str = field(compare=False)
    scope: str = field(compare=False)
    text: str = field(compare=False)
    generation: str | None = field(compare=False)
    tick: str | None = field(compare=False)

    def __str__(self) -> str:
        text = self.text
        for name, value in (("tick", self.tick), ("again", self.generation), ("namespace", self.namespace)):
            if value:
                text += f" {name}={readable_text(value)}"
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... {self.digest.hex()}"

    def idempotency_key(self, step: str) -> UUID:
        """A UUID for *step* of this effect, the same in every attempt and process; show it to the outside."""
        return idempotency_key(self.digest, step)


def idempotency_key(digest: bytes, step: str) -> UUID:
    """A UUID for *step* of the effect with this digest; derived, so that it need not be stored."""
    made = int.from_bytes(blake2b(digest + encode_text(step), digest_size=16, person=_STEP_VERSION).digest())
    return UUID(int=made & ~_UUID_MASK | _UUID_8)


class KeySource:
    """Makes the keys and fingerprints of one task's calls; compiled once, since every call needs it."""

    __slots__ = ("_arguments", "_callable", "_fingerprinter", "_policy", "_scope", "_task", "_template")

    def __init__(self, policy: Policy, task_name: str, signature: Signature) -> None:
        names = tuple(signature.parameters)
        self._policy = policy
        self._task = task_name
        self._scope = policy.scope or task_name
        self._arguments = Arguments(signature)
        self._template = _template(policy, names, task_name)
        self._callable = KeyCallable(policy.key, signature) if callable(policy.key) else None
        self._fingerprinter = _fingerprinter(policy, task_name, signature)

    @classmethod
    def compile(cls, policy: Policy, task_name: str, signature: Signature) -> "KeySource":
        """The source of a task's keys, *signature* being that of its body without ``self``; raises PolicyInvalid."""
        policy.check(task_name, signature)
        return cls(policy, task_name, signature)

    def key(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        namespace: str,
        generation: str | None,
        tick: str | None,
        at_call: str | None,
        parent: str | None,
        message_id: str | None,
        http: str | None,
        entry: str | None = None,
    ) -> Key:
        """The key of one call; *entry* names the schedule's entry that *tick* is an instant of.

        Raises KeyMissing when nothing names its effect, KeyInvalid when a part of its name cannot, and TypeError, as
        the body would, for arguments that do not fit.
        """
        if at_call is not None or self._policy.key_at_call:
            text, encoded = self._from_call(at_call)
        elif self._template is not None:
            text, encoded = self._from_template(self._template, self._arguments.values(args, kwargs), tick)
        elif self._callable is not None:
            text, encoded = self._from_callable(self._callable, self._arguments.values(args, kwargs))
        elif self._policy.key is Message.MESSAGE:
            text, encoded = self._from_header("message", message_id)
        elif http is not None:
            text, encoded = self._from_http(http, self.fingerprint(args, kwargs))
        elif tick is not None:
            text, encoded = self._from_header("tick", tick if entry is None else entry)
        else:
            text, encoded = self._from_header("parent", parent)
        if not self._policy.each_tick_its_own:
            generation = tick = None
        return self._key(text, encoded, namespace=namespace, generation=generation, tick=tick)

    def named(self, text: str) -> Iterator[Key]:
        """The keys of this task that read *text*: one, or a few where the text does not say whence it comes; or none.

        Exact: each is written again and compared. A key that cannot be read back (lists, dicts, records, times of day
        in it) is not among them.
        """
        for whole in written(text):
            for way in (self._read_template, self._read_callable, self._read_from_call, self._read_header):
                with suppress(Unreadable):
                    for encoded in way(whole.body):
                        key = self._key(
                            whole.body,
                            encoded,
                            namespace=whole.namespace,
                            generation=whole.generation,
                            tick=whole.tick,
                        )
                        if str(key) == text:
                            yield key

    def key_of_message(self, message_id: str) -> Key:
        """A key from a message's id alone, whatever the policy says; for a call that cannot be named."""
        text, encoded = self._from_header("message", message_id)
        return self._key(text, encoded, namespace="", generation=None, tick=None)

    def fingerprint(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Fingerprint:
        """The fingerprint of one call; raises KeyInvalid for an argument that has none, TypeError as `key` does."""
        if self._fingerprinter is None:
            return NOT_TAKEN
        return self._fingerprinter.take(self._arguments.values(args, kwargs))

    def _from_call(self, given: str | None) -> Named:
        if given is None:
            raise KeyMissing(task=self._task)
        if self._policy.key is not None and not self._policy.key_at_call:
            reason = "the task names its own key; give the policy key_at_call=True to take keys from calls"
            raise KeyInvalid(task=self._task, part="effect_key", reason=reason)
        self._must_be_text("effect_key", given)
        return f"{self._scope}:{readable_text(given)}", b"A" + encode_text(given)

    def _from_template(self, template: Template, values: Sequence[Any], tick: str | None) -> Named:
        text, encoded = template.name(values, tick)
        return text if template.begins_with_text else f"{self._scope}:{text}", b"T" + encoded

    def _from_callable(self, key: KeyCallable, values: Sequence[Any]) -> Named:
        made = key(values)
        parts = made if isinstance(made, (tuple, list)) else (made,)
        try:
            encoded = encode_part(made)
            if parts and not any(encode_part(part) in EMPTY for part in parts):
                texts = [readable(part, ":" if at < len(parts) else "") for at, part in enumerate(parts, 1)]
                return ":".join([self._scope, *texts]), b"C" + encoded
            reason = EMPTY_PART
        except NotPlain as not_plain:
            reason = str(not_plain)
        except RecursionError:
            reason = TOO_DEEP
        raise KeyInvalid(task=self._task, part="key", reason=reason) from None

    def _from_http(self, given: str, fingerprint: Fingerprint) -> Named:
        text, encoded = self._from_header("http", given)
        return f"{text} arguments={fingerprint.whole.hex()}", encoded + fingerprint.whole

    def _from_header(self, origin: Literal["message", "http", "tick", "parent"], value: str | None) -> Named:
        if value is None:
            raise KeyMissing(task=self._task)
        self._must_be_text(origin, value)
        return f"{self._scope} {origin}={readable_text(value)}", _LETTERS[origin] + encode_text(value)

    def _read_template(self, body: str) -> Sequence[bytes]:
        template = self._template
        if template is None:
            return []
        return [b"T" + template.read(body if template.begins_with_text else self._without_scope(body, ":"))]

    def _read_callable(self, body: str) -> Sequence[bytes]:
        if self._callable is None:
            return []
        parts = [read_part(token, before) for token, before in split(self._without_scope(body, ":"))]
        made = [parts, *parts] if len(parts) == 1 else [parts]
        return [b"C" + encode_part(each) for each in made]

    def _read_from_call(self, body: str) -> Sequence[bytes]:
        if self._policy.key is not None and not self._policy.key_at_call:
            return []
        return [b"A" + encode_text(read_text(self._without_scope(body, ":")))]

    def _read_header(self, body: str) -> Sequence[bytes]:
        origin, _, rest = self._without_scope(body, " ").partition("=")
        value, _, whole = rest.partition(" arguments=") if origin == "http" else (rest, "", "")
        try:
            return [_LETTERS[origin] + encode_text(read_text(value)) + bytes.fromhex(whole)]
        except (KeyError, ValueError):
            raise Unreadable from None

    def _without_scope(self, body: str, sign: str) -> str:
        if not body.startswith(self._scope + sign):
            raise Unreadable
        return body.removeprefix(self._scope + sign)

    def _key(self, text: str, encoded: bytes, *, namespace: str, generation: str | None, tick: str | None) -> Key:
        if generation is not None:
            self._must_be_text("effect_again", generation)
        if tick is not None:
            self._must_be_text("tick", tick)
        whole = b"".join(
            (
                encode_text(namespace),
                encode_text(self._scope),
                encode_optional(generation),
                encode_optional(tick),
                encoded,
            )
        )
        return Key(
            digest=blake2b(whole, digest_size=16, person=_VERSION).digest(),
            namespace=namespace,
            scope=self._scope,
            text=text,
            generation=generation,
            tick=tick,
        )

    def _must_be_text(self, part: str, value: object) -> None:
        """Refuse what a foreign sender may have put into a header."""
        if not isinstance(value, str) or not value:
            raise KeyInvalid(task=self._task, part=part, reason=f"it must be text that is not empty, not {kind(value)}")


def _template(policy: Policy, names: Sequence[str], task: str) -> Template | None:
    if not isinstance(policy.key, str):
        return None
    return read_template(policy.key, names, task=task, fixed=policy.one_for_ever)


def _fingerprinter(policy: Policy, task: str, signature: Signature) -> Fingerprinter | None:
    if policy.fingerprint is None:
        return None
    counted = policy.fingerprint
    return Fingerprinter(signature, lambda name: counted == "all" or name in counted, task=task)
