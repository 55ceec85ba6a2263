"""One module: its imports, classes, functions and constants; bodies are walked when a rule first asks for them.

Most of a project has nothing to do with tasks. So a module is only indexed by its statements, which is cheap, and the
expressions of a function are looked at when some task turns out to reach it.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, Final, Protocol, TypeVar

from effectonce.checker.findings import Found, Span
from effectonce.checker.names import TASK, Scope, dotted
from effectonce.checker.source import Source
from effectonce.checker.walk import Frame, Kind, Step, imported, walk

T = TypeVar("T")


class Resolver(Protocol):
    """What a module asks of the project."""

    def resolve(self, name: str, near: "Module | None" = None) -> str:
        """Follow *name* to where it is defined."""
        ...

    def knows(self, name: str) -> bool:
        """Tell whether the project defines the function *name*."""
        ...


_WITHOUT_BLOCKS: Final[frozenset[type]] = frozenset(
    {ast.Expr, ast.Return, ast.Raise, ast.AugAssign, ast.Pass, ast.Delete, ast.Assert, ast.Continue, ast.Break}
)
_BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")


@dataclass(eq=False)
class Class:
    """A class of the project."""

    module: "Module"
    node: ast.ClassDef
    qualname: str
    methods: dict[str, "Function"] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its dotted name in the project."""
        return f"{self.module.name}.{self.qualname}"

    @cached_property
    def bases(self) -> list[str]:
        """What it is derived from, resolved."""
        return [dotted(base, self.module.scope) for base in self.node.bases]

    @cached_property
    def attributes(self) -> dict[str, ast.expr]:
        """What its body assigns."""
        return {name: value for statement in self.node.body for name, value in _assigned(statement)}


@dataclass(eq=False)
class Function:
    """A function or method of the project."""

    module: "Module"
    node: ast.FunctionDef | ast.AsyncFunctionDef
    qualname: str
    owner: Class | None = None
    parent: "Function | None" = None
    nested: dict[str, "Function"] = field(default_factory=dict)
    is_task: bool = False
    guarded: dict[bool, bool] = field(default_factory=dict)
    """What `guards.has_guard` answered, with and without locks."""

    found_once: dict[str, Any] = field(default_factory=dict)
    """What several rules ask about it, by the name of the question; see `asked_once`."""

    @property
    def name(self) -> str:
        """Its dotted name in the project."""
        return f"{self.module.name}.{self.qualname}"

    @cached_property
    def decorators(self) -> list[tuple[str, ast.expr]]:
        """The resolved name of each decorator, with its expression."""
        return [(dotted(each, self.scope_around), each) for each in self.node.decorator_list]

    @cached_property
    def parameters(self) -> list[str]:
        """The names of its parameters, in their order."""
        arguments = self.node.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        return [each.arg for each in named]

    @property
    def scope_around(self) -> Mapping[str, str]:
        """What names stand for where it is defined."""
        if self.parent is None:
            return self.module.scope
        return Scope({name: each.name for name, each in self.parent.nested.items()}, self.parent.scope_around)

    @cached_property
    def scope(self) -> Mapping[str, str]:
        """What names stand for when its body begins."""
        known = {name: each.name for name, each in self.nested.items()}
        arguments = self.node.args
        names = [*self.parameters, *(each.arg for each in (arguments.vararg, arguments.kwarg) if each)]
        known.update({name: name for name in names})
        first = self.parameters[0] if self.parameters else None
        if first is not None and self.owner is not None and not self.is_static:
            known[first] = TASK if self.is_task else f"{self.owner.name}()"
        elif first == "self" and self.is_task:
            known[first] = TASK
        return Scope(known, self.scope_around)

    @cached_property
    def is_static(self) -> bool:
        """Tell whether it is a method without `self`."""
        return any(name == "staticmethod" for name, _ in self.decorators)

    @cached_property
    def steps(self) -> list[Step]:
        """What its body does, in order."""
        frame: Frame | None = None
        for name, node in reversed(self.decorators):
            frame = Frame(Kind.WITH, node, frame, (name,))
        return walk(
            self.node.body, self.scope, package=self.module.package, frame=frame, knows=self.module.resolver.knows
        )

    @cached_property
    def calls(self) -> list[Step]:
        """The calls among its steps."""
        return [step for step in self.steps if isinstance(step.node, ast.Call)]

    @cached_property
    def _calls_by_word(self) -> dict[str, list[Step]]:
        out: dict[str, list[Step]] = {}
        for step in self.calls:
            out.setdefault(step.word, []).append(step)
        return out

    def calling(self, words: frozenset[str]) -> list[Step]:
        """The calls whose last word is one of *words*, in their order."""
        found = self._calls_by_word.keys() & words
        if len(found) <= 1:
            return [step for word in found for step in self._calls_by_word[word]]
        return sorted((step for word in found for step in self._calls_by_word[word]), key=_in_order)

    @cached_property
    def branches(self) -> list[tuple[Step, ast.If]]:
        """The `if` statements among its steps."""
        return [(step, step.node) for step in self.steps if isinstance(step.node, ast.If)]

    @cached_property
    def call_names(self) -> dict[int, str]:
        """What each call of its body calls, by the identity of its node."""
        return {id(step.node): step.name for step in self.calls}

    def name_of(self, node: ast.AST) -> str:
        """The dotted name of what the call *node* of this body calls."""
        return self.call_names.get(id(node), "")

    @cached_property
    def assigned(self) -> dict[str, list[ast.expr]]:
        """What each local name is assigned, in order."""
        out: dict[str, list[ast.expr]] = {}
        for step in self.steps:
            if isinstance(step.node, ast.stmt):
                for name, value in _assigned(step.node):
                    out.setdefault(name, []).append(value)
        return out

    @property
    def text(self) -> str:
        """Its source."""
        return self._lines(self.node.lineno)

    def source_after(self, step: Step) -> str:
        """The text of the body from the statement of *step* on."""
        return self._lines(step.statement.lineno)

    def _lines(self, row: int) -> str:
        return "\n".join(self.module.source.lines[row - 1 : self.node.end_lineno])

    def found(self, node: ast.AST, message: str) -> Found:
        """Say *message* of *node* in this function."""
        return self.module.found(node, message)


def _in_order(step: Step) -> int:
    return step.index


def asked_once(question: Callable[[Function], T]) -> Callable[[Function], T]:
    """Let a question about a function be worked out once, and its answer end with the function."""
    name = f"{question.__module__}.{question.__qualname__}"

    @wraps(question)
    def ask(function: Function) -> T:
        if name not in function.found_once:
            function.found_once[name] = question(function)
        answer: T = function.found_once[name]
        return answer

    return ask


class Module:
    """A parsed file of Python."""

    def __init__(self, source: Source, tree: ast.Module, name: str, *, is_package: bool, resolver: Resolver) -> None:
        self.source = source
        self.tree = tree
        self.name = name
        self.package = name if is_package else name.rpartition(".")[0]
        self.names: dict[str, str] = {}
        self.constants: dict[str, ast.expr] = {}
        self.classes: dict[str, Class] = {}
        self.functions: dict[str, Function] = {}
        self.resolver = resolver
        self._index(tree.body, None, None, "")

    @cached_property
    def scope(self) -> dict[str, str]:
        """What each name of the module stands for, followed through other modules."""
        own = f"{self.name}."
        return {
            name: value if value == own + name else self.resolver.resolve(value, self)
            for name, value in self.names.items()
        }

    @cached_property
    def steps(self) -> list[Step]:
        """What happens when the module is imported."""
        return walk(self.tree.body, self.scope, package=self.package, knows=self.resolver.knows)

    def forget(self) -> None:
        """Break the circles between a module and what it holds, so that its tree goes without the collector."""
        for each in (*self.functions.values(), *self.classes.values()):
            vars(each).clear()
        vars(self).clear()

    def found(self, node: ast.AST, message: str) -> Found:
        """Say *message* of *node* in this module."""
        return Found(path=self.source.path, span=Span.of_node(node, self.source.lines), message=message)

    def _index(self, body: Sequence[ast.AST], owner: Class | None, parent: Function | None, prefix: str) -> None:
        pending: list[ast.AST] = list(reversed(body))
        while pending:
            statement = pending.pop()
            if type(statement) in _WITHOUT_BLOCKS:
                continue
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._index_function(statement, owner, parent, prefix)
                case ast.ClassDef():
                    self._index_class(statement, parent, prefix)
                case ast.Import() | ast.ImportFrom() if parent is None and owner is None:
                    self.names.update(imported(statement, self.package))
                case ast.Assign() | ast.AnnAssign() if parent is None and owner is None:
                    self._index_assignment(statement)
                case _:
                    for block in _BLOCKS:
                        pending.extend(reversed(getattr(statement, block, None) or ()))

    def _index_function(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        owner: Class | None,
        parent: Function | None,
        prefix: str,
    ) -> None:
        function = Function(self, node, prefix + node.name, owner, parent)
        self.functions[function.qualname] = function
        if owner is not None:
            owner.methods[node.name] = function
        elif parent is not None:
            parent.nested[node.name] = function
        else:
            self.names[node.name] = function.name
        self._index(node.body, None, function, f"{function.qualname}.<locals>.")

    def _index_class(self, node: ast.ClassDef, parent: Function | None, prefix: str) -> None:
        cls = Class(self, node, prefix + node.name)
        self.classes[cls.qualname] = cls
        if parent is None and not prefix:
            self.names[node.name] = cls.name
        self._index(node.body, cls, parent, f"{cls.qualname}.")

    def _index_assignment(self, statement: ast.Assign | ast.AnnAssign) -> None:
        for name, value in _assigned(statement):
            self.constants[name] = value
            alias = dotted(value, self.names)
            self.names[name] = alias if alias and alias != name else f"{self.name}.{name}"


def _assigned(statement: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match statement:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, value
                elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                    pairs = zip(target.elts, value.elts, strict=False)
                    yield from ((each.id, item) for each, item in pairs if isinstance(each, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case _:
            return
