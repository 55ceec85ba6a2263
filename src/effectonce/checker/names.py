"""What a name in the code stands for: `app.task` is `celery.Celery().task`.

An expression is written as one dotted text: attributes with a point, calls as `()`, items as `[]`. A name at its head
is replaced by what the scope knows of it: an import, a definition of the module, or what was assigned to it last.
So `Order.objects.filter(paid=True).first()` in any module is `shop.models.Order.objects.filter().first`.
"""

import ast
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

LONGEST_CHAIN: Final = 40
TASK: Final = "$task"


class Scope(dict[str, str]):
    """What the names of a body stand for: its own, else those around it, which are not copied."""

    def __init__(self, own: Mapping[str, str], around: Mapping[str, str]) -> None:
        super().__init__(own)
        self._around = around

    def get(self, name: str, default: Any = None) -> Any:
        """The meaning of *name* here, or *default*."""
        found = super().get(name)
        return self._around.get(name, default) if found is None else found


def dotted(node: ast.AST, known: Mapping[str, str]) -> str:
    """Write *node* as dotted text, or as the empty text where it is no chain of names, calls and items."""
    if isinstance(node, ast.Name):
        return known.get(node.id, node.id)
    parts: list[str] = []
    while len(parts) <= LONGEST_CHAIN:
        if isinstance(node, ast.Name):
            head = known.get(node.id, node.id)
            return head + "".join(reversed(parts)) if parts else head
        if isinstance(node, ast.Attribute):
            parts.append("." + node.attr)
            node = node.value
        elif isinstance(node, ast.Call):
            parts.append("()")
            node = node.func
        elif isinstance(node, ast.Subscript):
            parts.append("[]")
            node = node.value
        elif isinstance(node, ast.Await | ast.NamedExpr | ast.Starred):
            node = node.value
        else:
            return ""
    return ""


def last(name: str) -> str:
    """The last word of a dotted text: `apply_async` of `tasks.charge.apply_async`."""
    return name.rpartition(".")[2]


def before(name: str) -> str:
    """What a method is called on: `tasks.charge` of `tasks.charge.apply_async`."""
    return name.rpartition(".")[0]


@lru_cache(maxsize=8192)
def words(name: str) -> frozenset[str]:
    """The words of an identifier or a text, in lower case: `is_already_paid` has three."""
    out: list[str] = []
    for letter in name:
        if not letter.isalnum():
            out.append(" ")
        elif letter.isupper() and out and out[-1].islower():
            out.append(" " + letter.lower())
        else:
            out.append(letter.lower())
    return frozenset("".join(out).split())
