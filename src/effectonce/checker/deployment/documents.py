"""YAML as nodes that know their line, read with bounds.

The parser's events are put together here and not by the library: without recursion, without making objects, and with
an alias as a reference, so that neither deep nor wide files cost more than their text. Templates of Helm are read as
far as they are YAML: a line that is only a template is left out, a template in a line becomes its default or a word.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

DEEPEST: Final = 200
MOST_MERGES: Final = 5
_ONLY_TEMPLATE: Final = re.compile(r"^\s*(-\s*)?\{\{.*\}\}\s*$")
_TEMPLATE: Final = re.compile(r"\{\{(.*?)\}\}")
_DEFAULT: Final = re.compile(r"default\s+(\"[^\"]*\"|[\w.]+)")
_VARIABLE: Final = re.compile(r"\$\{\w+(?::?-([^}]*))?\}|\$\w+")


class YamlMissing(Exception):
    """PyYAML is not installed."""


class YamlBroken(Exception):
    """The text is no YAML; *row* says where, counted from 1."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(row, reason)
        self.row = row
        self.reason = reason


@dataclass(eq=False)
class Node:
    """A scalar (with *text*), a sequence (with *items*) or a mapping (with *pairs*) at a line."""

    row: int
    text: str | None = None
    items: list["Node"] = field(default_factory=list)
    pairs: list[tuple["Node", "Node"]] = field(default_factory=list)

    def get(self, *path: str) -> "Node | None":
        """The node at *path*, through merges (`<<`)."""
        node: Node | None = self
        for name in path:
            node = node.child(name) if node is not None else None
        return node

    def child(self, name: str, merges: int = MOST_MERGES) -> "Node | None":
        """The value of *name*, its own or from one of *merges* levels of merges."""
        for key, value in self.pairs:
            if key.text == name:
                return value
        if merges:
            for key, value in self.pairs:
                if key.text == "<<":
                    for each in value.items or [value]:
                        found = each.child(name, merges - 1)
                        if found is not None:
                            return found
        return None

    def entries(self) -> Iterator[tuple[str, "Node"]]:
        """The pairs of a mapping whose keys are texts."""
        yield from ((key.text, value) for key, value in self.pairs if key.text is not None)

    def words(self) -> str:
        """A scalar, or a list of scalars with spaces between them, with variables as their defaults."""
        parts = [each.text or "" for each in self.items] if self.items else [self.text or ""]
        return " ".join(_filled(part) for part in parts)

    def number(self) -> float | None:
        """A scalar as a number, or None; a variable counts as its default."""
        try:
            return float(_filled(self.text or ""))
        except ValueError:
            return None


def _filled(text: str) -> str:
    return _VARIABLE.sub(lambda match: match[1] or "", text) if "$" in text else text


def documents(text: str) -> list[Node]:
    """The documents of *text*."""
    try:
        import yaml  # noqa: PLC0415 - an extra: only who checks YAML needs it
    except ImportError as error:
        raise YamlMissing from error
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if "{{" in text:
        text = _without_templates(text)
    try:
        return _Builder().build(yaml.parse(text, Loader=loader))
    except yaml.MarkedYAMLError as error:
        row = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise YamlBroken(row, str(error.problem)) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlBroken(1, str(error)) from error


def _without_templates(text: str) -> str:
    lines = ["" if _ONLY_TEMPLATE.match(line) else _TEMPLATE.sub(_defaulted, line) for line in text.split("\n")]
    return "\n".join(lines)


def _defaulted(match: re.Match[str]) -> str:
    default = _DEFAULT.search(match[1])
    return default[1].strip('"') if default is not None else "templated"


class _Builder:
    """Puts events together; *open* holds the nodes that are not closed yet, with a key that waits for its value."""

    def __init__(self) -> None:
        self.done: list[Node] = []
        self.open: list[tuple[Node, list[Node], bool]] = []
        self.anchors: dict[str, Node] = {}

    def build(self, events: Any) -> list[Node]:
        for event in events:
            kind = type(event).__name__
            row = event.start_mark.line + 1
            match kind:
                case "ScalarEvent":
                    self._add(self._named(event.anchor, Node(row, event.value)))
                case "AliasEvent":
                    self._add(self.anchors.get(event.anchor, Node(row, "")))
                case "SequenceStartEvent" | "MappingStartEvent":
                    node = self._named(event.anchor, Node(row))
                    self._add(node)
                    self.open.append((node, [], kind == "MappingStartEvent"))
                    if len(self.open) > DEEPEST:
                        raise YamlBroken(row, "nested too deeply")
                case "SequenceEndEvent" | "MappingEndEvent":
                    self.open.pop()
                case _:
                    pass
        return self.done

    def _named(self, anchor: str | None, node: Node) -> Node:
        if anchor:
            self.anchors[anchor] = node
        return node

    def _add(self, node: Node) -> None:
        if not self.open:
            self.done.append(node)
            return
        around, waiting, is_mapping = self.open[-1]
        if not is_mapping:
            around.items.append(node)
        elif waiting:
            around.pairs.append((waiting.pop(), node))
        else:
            waiting.append(node)
