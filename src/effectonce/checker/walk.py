"""A body as the list of its steps: what it calls and does, in order, and inside of what.

Rules ask about order and nesting (a send *inside* a transaction, a delete *in* a finally, an insert *after* a look).
So a body is walked once, and each call, assignment, return and raise is a `Step` with the `Frame` it stands in. Code
of a lambda runs later than where it stands; its frame says so. Functions defined in the body are bodies of their own.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from effectonce.checker.names import Scope, dotted


class Kind(Enum):
    """What a frame is."""

    WITH = auto()
    TRY = auto()
    EXCEPT = auto()
    FINALLY = auto()
    IF = auto()
    ELSE = auto()
    LOOP = auto()
    LAMBDA = auto()


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A structure around steps; *names* are the contexts of a `with`."""

    kind: Kind
    node: ast.AST
    parent: "Frame | None"
    names: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Step:
    """One call or statement of a body; *name* is what a call calls: the *word* of its *receiver*.

    Nobody changes one. It is not frozen, since there are as many as there are calls, and frozen ones are slow to make.
    """

    node: ast.expr | ast.stmt
    name: str
    receiver: str
    word: str
    frame: Frame | None
    statement: ast.stmt
    index: int
    knows: Callable[[str], bool]

    @property
    def is_own(self) -> bool:
        """Tell whether a call leads to a function of the project."""
        return self.knows(self.name)

    @property
    def call(self) -> ast.Call:
        """The node of a call."""
        assert isinstance(self.node, ast.Call)  # noqa: S101 - asked of calls only
        return self.node

    def frames(self, *kinds: Kind) -> Iterator[Frame]:
        """The frames around it, from the inside; of *kinds* only, if given."""
        frame = self.frame
        while frame is not None:
            if not kinds or frame.kind in kinds:
                yield frame
            frame = frame.parent

    def inside(self, *kinds: Kind) -> bool:
        """Tell whether it stands in a frame of one of *kinds*."""
        frame = self.frame
        while frame is not None:
            if frame.kind in kinds:
                return True
            frame = frame.parent
        return False

    def within(self, frame: Frame) -> bool:
        """Tell whether it stands in *frame*."""
        return any(each is frame or (each.node is frame.node and each.kind is frame.kind) for each in self.frames())


MOST_STEPS: Final = 1200
"""What a body is read up to: rules compare steps with each other, and a body that was made by a program has no end."""
_RECORDED: Final[frozenset[type]] = frozenset(
    {ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Raise, ast.Delete}
)
_SIMPLE: Final[frozenset[type]] = _RECORDED | {ast.Expr, ast.Pass}
_COMPREHENSIONS: Final = frozenset({ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp})
_FIELDS: Final[dict[type, tuple[str, ...]]] = {}
_CHILDLESS: Final = frozenset({"ctx", "op", "ops", "attr", "id", "kind", "arg", "conversion", "is_async", "simple"})
_LEAVES: Final[frozenset[type]] = frozenset({ast.Name, ast.Constant})


def walk(
    body: Sequence[ast.stmt],
    known: Mapping[str, str],
    *,
    package: str,
    knows: Callable[[str], bool],
    frame: Frame | None = None,
) -> list[Step]:
    """List the steps of *body* in *package*; *known* says what the names around it stand for.

    *knows* tells whether a name is a function of the project, whose own body says what it does.
    """
    walker = _Walker(known, package, knows)
    walker.block(body, frame)
    return walker.steps


class _Walker:
    def __init__(self, known: Mapping[str, str], package: str, knows: Callable[[str], bool]) -> None:
        self.knows = knows
        self.known = Scope({}, known)
        self.package = package
        self.steps: list[Step] = []
        self.statement: ast.stmt = ast.Pass()

    def block(self, body: Sequence[ast.stmt], frame: Frame | None) -> None:
        for statement in body:
            self.statement = statement
            if type(statement) in _SIMPLE:
                self._simple(statement, frame)
                continue
            match statement:
                case ast.If():
                    self._if(statement, frame)
                case ast.For() | ast.AsyncFor() | ast.While():
                    self._loop(statement, frame)
                case ast.With() | ast.AsyncWith():
                    self._with(statement, frame)
                case ast.Try() | ast.TryStar():
                    self._try(statement, frame)
                case ast.Match():
                    self._match(statement, frame)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    pass
                case ast.Import() | ast.ImportFrom():
                    self.known.update(imported(statement, self.package))
                case _:
                    self._simple(statement, frame)

    def _simple(self, statement: ast.stmt, frame: Frame | None) -> None:
        for child in children(statement):
            if isinstance(child, ast.expr):
                self.expression(child, frame)
        if type(statement) in _RECORDED:
            self._record(statement, "", frame)
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                self._bind(target, statement.value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self._bind(statement.target, statement.value)

    def _if(self, statement: ast.If, frame: Frame | None) -> None:
        branch: ast.If | None = statement
        while branch is not None:
            self.statement = branch
            self.expression(branch.test, frame)
            self._record(branch, "", frame)
            self.block(branch.body, Frame(Kind.IF, branch, frame))
            match branch.orelse:
                case [ast.If() as other]:
                    branch = other
                case rest:
                    self.block(rest, Frame(Kind.ELSE, branch, frame))
                    branch = None

    def _loop(self, statement: ast.For | ast.AsyncFor | ast.While, frame: Frame | None) -> None:
        inner = Frame(Kind.LOOP, statement, frame)
        if isinstance(statement, ast.While):
            self.expression(statement.test, inner)
        else:
            self.expression(statement.iter, frame)
            self._bind(statement.target, statement.iter, suffix="[]")
        self._record(statement, "", frame)
        self.block(statement.body, inner)
        self.block(statement.orelse, frame)

    def _with(self, statement: ast.With | ast.AsyncWith, frame: Frame | None) -> None:
        names = []
        for item in statement.items:
            self.expression(item.context_expr, frame)
            names.append(dotted(item.context_expr, self.known))
            if item.optional_vars is not None:
                self._bind(item.optional_vars, item.context_expr)
        self.block(statement.body, Frame(Kind.WITH, statement, frame, tuple(names)))

    def _try(self, statement: ast.Try | ast.TryStar, frame: Frame | None) -> None:
        covered = Frame(Kind.FINALLY, statement, frame) if statement.finalbody else None
        around = Frame(Kind.TRY, statement, frame)
        self.block(statement.body, around)
        for clause in statement.handlers:
            self.block(clause.body, Frame(Kind.EXCEPT, clause, frame))
        self.block(statement.orelse, frame)
        if covered is not None:
            self.block(statement.finalbody, covered)

    def _match(self, statement: ast.Match, frame: Frame | None) -> None:
        self.expression(statement.subject, frame)
        for case in statement.cases:
            self.block(case.body, Frame(Kind.IF, case, frame))

    def expression(self, node: ast.expr, frame: Frame | None) -> None:
        if type(node) in _LEAVES:
            return
        stack: _Stack = [(node, frame)]
        while stack:
            each, around = stack.pop()
            kind = type(each)
            if isinstance(each, ast.Call):
                self._record(each, dotted(each.func, self.known), around)
                _push_call(each, around, stack)
                continue
            if isinstance(each, ast.Attribute):
                _push(each.value, around, stack)
                continue
            if kind is ast.Lambda:
                around = Frame(Kind.LAMBDA, each, around)
            elif kind in _COMPREHENSIONS:
                around = Frame(Kind.LOOP, each, around)
            elif isinstance(each, ast.NamedExpr):
                self._bind(each.target, each.value)
            stack.extend([(child, around) for child in reversed(children(each))])

    def _record(self, node: ast.expr | ast.stmt, name: str, frame: Frame | None) -> None:
        if len(self.steps) < MOST_STEPS:
            receiver, _, word = name.rpartition(".")
            self.steps.append(Step(node, name, receiver, word, frame, self.statement, len(self.steps), self.knows))

    def _bind(self, target: ast.expr, value: ast.expr, *, suffix: str = "") -> None:
        if isinstance(target, ast.Name):
            name = dotted(value, self.known)
            if name:
                self.known[target.id] = name + suffix
            else:
                self.known[target.id] = target.id
        elif isinstance(target, ast.Tuple | ast.List):
            for number, each in enumerate(target.elts):
                if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
                    self._bind(each, value.elts[number])
                else:
                    self._bind(each, value, suffix=suffix + "[]")


_Stack = list[tuple[ast.AST, Frame | None]]


def _push(node: ast.expr, around: Frame | None, stack: _Stack) -> None:
    """Look at *node* next, or at what its attributes are taken of."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if type(node) not in _LEAVES:
        stack.append((node, around))


def _push_call(call: ast.Call, around: Frame | None, stack: _Stack) -> None:
    """Look at what is called first, then at the arguments: most nodes are calls, and of few fields."""
    for keyword in reversed(call.keywords):
        if type(keyword.value) not in _LEAVES:
            stack.append((keyword.value, around))
    for argument in reversed(call.args):
        if type(argument) not in _LEAVES:
            stack.append((argument, around))
    _push(call.func, around, stack)


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly under *node* that may hold a call."""
    fields = _FIELDS.get(type(node))
    if fields is None:
        fields = _FIELDS[type(node)] = tuple(field for field in node._fields if field not in _CHILDLESS)
    out: list[ast.AST] = []
    for field in fields:
        value = getattr(node, field, None)
        if type(value) is list:
            out += [each for each in value if type(each) not in _LEAVES and isinstance(each, ast.AST)]
        elif type(value) not in _LEAVES and isinstance(value, ast.AST):
            out.append(value)
    return out


def imported(statement: ast.Import | ast.ImportFrom, package: str) -> dict[str, str]:
    """What the names that *statement* brings stand for; *package* is that of the importing module."""
    if isinstance(statement, ast.Import):
        return {
            alias.asname or alias.name.partition(".")[0]: alias.name if alias.asname else alias.name.partition(".")[0]
            for alias in statement.names
        }
    origin = statement.module or ""
    if statement.level:
        parts = package.split(".") if package else []
        kept = parts[: len(parts) - statement.level + 1]
        origin = ".".join([*kept, *([origin] if origin else [])])
    return {alias.asname or alias.name: f"{origin}.{alias.name}".lstrip(".") for alias in statement.names}
