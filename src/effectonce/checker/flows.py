"""Where the text of a key comes from.

A value goes on through texts, casts, digests and local names, and not through calls that only take it as an argument:
what `make_order(token)` returns is no token. A choice such as `given or new()` counts as what is given.
"""

import ast
from collections.abc import Callable, Iterator
from typing import Final

from effectonce.checker.module import Function
from effectonce.checker.names import last
from effectonce.checker.survey import Survey

Test = Callable[[ast.AST, str], bool]
"""Tells whether a node, with the dotted name of what it calls or is, is a source."""

_THROUGH: Final = {
    "str",
    "int",
    "hex",
    "bytes",
    "format",
    "join",
    "isoformat",
    "strftime",
    "timestamp",
    "encode",
    "decode",
    "hexdigest",
    "digest",
    "md5",
    "sha1",
    "sha256",
    "blake2b",
    "lower",
    "upper",
    "replace",
    "UUID",
    "round",
    "floor",
}
_ATTRIBUTES: Final = {"hex", "int", "bytes", "urn"}
_MOST_RETURNS: Final = 20


class Flow:
    """Which expressions of *function* carry what *is_source* finds."""

    def __init__(self, function: Function, survey: Survey, is_source: Test, *, depth: int = 2) -> None:
        self._function = function
        self._survey = survey
        self._is_source = is_source
        self._depth = depth
        self._places = {name: place for place, name in enumerate(function.assigned)}
        self._holds: dict[str, bool] = {}

    def carries(self, node: ast.expr | None) -> bool:
        """Tell whether the value of *node* is made of a source."""
        return self.origin(node) is not None

    def origin(self, node: ast.expr | None) -> ast.AST | None:
        """The leaf of *node* that is a source, or a name that holds one."""
        return self._origin(node, before=len(self._places))

    def _origin(self, node: ast.expr | None, *, before: int) -> ast.AST | None:
        if node is None:
            return None
        return next((leaf for leaf in leaves(node) if self._is_tainted(leaf, before=before)), None)

    def _holds_source(self, name: str) -> bool:
        """Whether a name holds a source, by what the names that were there before it hold."""
        if name not in self._holds:
            values, place = self._function.assigned[name], self._places[name]
            self._holds[name] = any(self._origin(value, before=place) is not None for value in values)
        return self._holds[name]

    def _is_tainted(self, leaf: ast.AST, *, before: int) -> bool:
        if isinstance(leaf, ast.Name) and self._places.get(leaf.id, before) < before and self._holds_source(leaf.id):
            return True
        name = self._function.name_of(leaf)
        if self._is_source(leaf, name):
            return True
        return isinstance(leaf, ast.Call) and self._depth > 0 and self._returns_source(name)

    def _returns_source(self, name: str) -> bool:
        called = self._survey.project.called(name, self._function)
        if called is None or called is self._function:
            return False
        inner = Flow(called, self._survey, self._is_source, depth=self._depth - 1)
        returns = [step.node for step in called.steps if isinstance(step.node, ast.Return)][:_MOST_RETURNS]
        return any(inner.carries(each.value) for each in returns)


def leaves(node: ast.expr) -> Iterator[ast.AST]:
    """What the value of *node* is put together from."""
    pending: list[ast.AST] = [node]
    while pending:
        each = pending.pop()
        inner = _inner(each)
        if inner:
            pending.extend(inner)
        else:
            yield each
        if isinstance(each, ast.Call) and inner:
            yield each


def _inner(node: ast.AST) -> list[ast.AST]:
    match node:
        case ast.JoinedStr(values=values):
            return [each.value for each in values if isinstance(each, ast.FormattedValue)]
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return list(elts)
        case ast.Dict(values=values):
            return [*values]
        case ast.Subscript(value=value) | ast.Starred(value=value) | ast.Await(value=value):
            return [value]
        case ast.Attribute(value=value, attr=attr) if attr in _ATTRIBUTES:
            return [value]
        case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args) if attr in _THROUGH:
            return [value, *args]
        case ast.Call(func=ast.Name(id=name), args=args) if name in _THROUGH:
            return [*args]
        case _:
            return []


RANDOM: Final = {
    "uuid1",
    "uuid4",
    "uuid6",
    "uuid7",
    "token_hex",
    "token_urlsafe",
    "token_bytes",
    "urandom",
    "randint",
    "randrange",
    "getrandbits",
    "get_random_string",
    "ulid",
    "nanoid",
}


def is_random(_node: ast.AST, name: str) -> bool:
    """Tell whether a call gives another value each time."""
    return last(name) in RANDOM or name in {
        "random.random",
        "celery.uuid",
        "celery.utils.uuid",
        "kombu.uuid",
        "kombu.utils.uuid.uuid",
    }
