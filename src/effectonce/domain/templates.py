"""A key's template: literal text, and parts that are taken from the arguments.

``{order_id}``, ``{order.id}``, ``{items[0]}``, ``{order.lines[0].sku}``; ``{tick}`` is the instant of the schedule
that sent the message, unless the task has a parameter of that name. Nothing is called, converted or formatted: a key is
made of values, and their text is not for the template to change. An item of a dict is looked up by text first, because
JSON makes text of whole-number names.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final

from effectonce.domain.canonical import EMPTY, encode_part, encode_text
from effectonce.domain.nearest import nearest
from effectonce.domain.plain import EMPTY_PART, TOO_DEEP, NotPlain, kind
from effectonce.domain.readable import readable
from effectonce.domain.recognition import TOKEN, Unreadable, read_part
from effectonce.errors import KeyInvalid

TICK: Final = "tick"

_FIELD: Final = re.compile(r"([^\W\d]\w*)((?:\.[^.\[\]]+|\[[^\[\]]+\])*)")
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[([^\[\]]+)\]")
_OF_THE_MESSAGE: Final = frozenset({"self", "task", "request", "task_id", "id"})


class TemplateFaulty(Exception):
    """A template that cannot be used; *faults* says each reason, for people."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__(*faults)
        self.faults = list(faults)


@dataclass(frozen=True, slots=True)
class Attribute:
    """A step of a path: ``.name``."""

    name: str

    def of(self, value: Any) -> Any:
        """Take the attribute; raises NotPlain when there is none."""
        try:
            return getattr(value, self.name)
        except AttributeError:
            written = f"; an item of a dict is written [{self.name}]" if isinstance(value, dict) else ""
            message = f"{kind(value)} has no attribute '{self.name}'{written}"
            raise NotPlain(message) from None


@dataclass(frozen=True, slots=True)
class Item:
    """A step of a path: ``[name]`` or ``[0]``."""

    name: str

    def of(self, value: Any) -> Any:
        """Take the item; raises NotPlain when there is none."""
        names = [self.name, int(self.name)] if self.name.isdecimal() else [self.name]
        message = f"{kind(value)} has no item [{self.name}]"
        if isinstance(value, dict):
            for name in names:
                if name in value:
                    return value[name]
            raise NotPlain(message)
        try:
            return value[names[-1]]
        except (LookupError, TypeError):
            raise NotPlain(message) from None


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a key: where its value comes from. *before* is as in `readable`; *place* None is the tick."""

    written: str
    place: int | None
    path: tuple[Attribute | Item, ...]
    before: str | None


class Template:
    """A template that was read and found good for one task."""

    __slots__ = ("_pieces", "_task", "begins_with_text")

    def __init__(self, pieces: Sequence[str | Field], task: str) -> None:
        self._task = task
        self.begins_with_text = isinstance(pieces[0], str)
        self._pieces = [(piece, encode_text(piece)) if isinstance(piece, str) else piece for piece in pieces]

    def name(self, values: Sequence[Any], tick: str | None) -> tuple[str, bytes]:
        """The key of a call, as text and as bytes; raises KeyInvalid when a part cannot name an effect."""
        texts: list[str] = []
        encoded: list[bytes] = []
        for piece in self._pieces:
            text, written = self._part(piece, values, tick) if isinstance(piece, Field) else piece
            texts.append(text)
            encoded.append(written)
        return "".join(texts), b"".join(encoded)

    def read(self, text: str) -> bytes:
        """The bytes of the key that `name` wrote as *text*; raises Unreadable when it cannot have."""
        pattern = "".join(f"({TOKEN})" if isinstance(piece, Field) else re.escape(piece[0]) for piece in self._pieces)
        matched = re.fullmatch(pattern, text)
        if matched is None:
            raise Unreadable
        tokens = iter(matched.groups())
        return b"".join(
            encode_part(read_part(next(tokens), piece.before)) if isinstance(piece, Field) else piece[1]
            for piece in self._pieces
        )

    def _part(self, field: Field, values: Sequence[Any], tick: str | None) -> tuple[str, bytes]:
        try:
            value = tick if field.place is None else values[field.place]
            for step in field.path:
                value = step.of(value)
            written = encode_part(value)
            if written not in EMPTY:
                return readable(value, field.before), written
            reason = "this call was sent by no schedule" if field.place is None else EMPTY_PART
        except NotPlain as not_plain:
            reason = str(not_plain)
        except RecursionError:
            reason = TOO_DEEP
        raise KeyInvalid(task=self._task, part=field.written, reason=reason) from None


def read_template(text: str, names: Sequence[str], *, task: str, fixed: bool = False) -> Template:
    """Read *text* for a task whose parameters are *names*; raises TemplateFaulty with every fault.

    *fixed*: it may be text alone.
    """
    faults: list[str] = []
    pieces: list[str | Field] = []
    try:
        parsed = list(Formatter().parse(text))
    except ValueError as error:
        raise TemplateFaulty([f"key={text!r} is no template: {error}; braces that are text are doubled"]) from None
    for literal, name, spec, conversion in parsed:
        _add_literal(pieces, literal)
        if name is not None:
            fault = _field_fault(name, spec, conversion, names)
            if fault:
                faults.append(f"key={text!r}: {fault}")
            else:
                pieces.append(_field(name, names))
    if not text.isprintable():
        faults.append(f"key={text!r} has characters that cannot be printed")
    if fixed and not text:
        faults.append("key='' is empty; text will do, as in 'sync'")
    elif not fixed and not faults and not any(isinstance(piece, Field) for piece in pieces):
        faults.append(
            f"key={text!r} names no parameter, so it would name one effect for ever; name one, as in "
            f"{_example(names)!r}, or leave the key out, or use Exclusive to keep its runs apart"
        )
    if faults:
        raise TemplateFaulty(faults)
    return Template(_with_what_follows(pieces), task)


def _add_literal(pieces: list[str | Field], literal: str) -> None:
    if literal and pieces and isinstance(pieces[-1], str):
        pieces[-1] += literal
    elif literal:
        pieces.append(literal)


def _field_fault(name: str, spec: str | None, conversion: str | None, names: Sequence[str]) -> str | None:
    if spec or conversion:
        return f"{{{name}}} must have no format and no conversion; a part is taken as it is"
    if not name or name.isdecimal():
        return f"{{{name}}} names no parameter; write its name, as in {_example(names)!r}"
    matched = _FIELD.fullmatch(name)
    if matched is None or not all(_is_name(step) for step, _ in _STEP.findall(matched[2])):
        return f"{{{name}}} is no path such as {{order.id}} or {{items[0]}}; nothing is called or computed"
    if any(step.startswith("_") for step, _ in _STEP.findall(matched[2])):
        return f"{{{name}}} has an attribute whose name begins with an underscore, which is private"
    root = matched[1]
    if root in names or root == TICK:
        return None
    if root in _OF_THE_MESSAGE:
        return (
            f"{{{name}}}: '{root}' is no parameter; key=MESSAGE takes the message's id, if redelivery is all there is"
        )
    return f"{{{name}}}: the task has no parameter {root!r}; {nearest(root, names)}"


def _is_name(step: str) -> bool:
    return not step or step.isidentifier()


def _field(name: str, names: Sequence[str]) -> Field:
    matched = _FIELD.fullmatch(name)
    assert matched is not None  # noqa: S101 - `_field_fault` has looked
    root, path = matched.groups()
    steps = tuple(Attribute(attribute) if attribute else Item(item) for attribute, item in _STEP.findall(path))
    return Field(name, names.index(root) if root in names else None, steps, "")


def _with_what_follows(pieces: Sequence[str | Field]) -> list[str | Field]:
    followed: list[str | Field] = []
    for at, piece in enumerate(pieces):
        if isinstance(piece, str):
            followed.append(piece)
            continue
        after = pieces[at + 1] if at + 1 < len(pieces) else ""
        before = after[:1] if isinstance(after, str) else None
        followed.append(Field(piece.written, piece.place, piece.path, before))
    return followed


def _example(names: Sequence[str]) -> str:
    return f"name:{{{names[0]}}}" if names else "name:{tick}"
