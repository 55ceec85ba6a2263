"""All files of a run, and what names mean across them.

A module is parsed when it has to do with Celery, or when a name that a task uses leads to it. The rest of a project
costs one look at its text.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from effectonce.checker.findings import Found, Span
from effectonce.checker.module import Class, Function, Module
from effectonce.checker.names import dotted, last
from effectonce.checker.numbers import UNKNOWN, Numbers
from effectonce.checker.source import Broken, Source, parse, read

CONCERNS: Final = (
    "celery",
    "Celery",
    "CELERY",
    ".delay",
    "apply_async",
    "send_task",
    "shared_task",
    "BROKER_",
    "effectonce",
    "redbeat",
)
MOST_HOPS: Final = 6
FOLDERS_ABOVE: Final = 3


class Project:
    """The Python files of a run."""

    def __init__(self, files: Iterable[Path]) -> None:
        self.sources: dict[Path, Source] = {}
        self.broken: dict[Path, Broken] = {}
        self._by_name: dict[str, Path] = {}
        self._suffixes: dict[str, list[str]] = {}
        self._modules: dict[str, Module | None] = {}
        self._resolved: dict[tuple[str, str], str] = {}
        self._functions: dict[str, Function | None] = {}
        for path in files:
            self._add(path)

    def _add(self, path: Path) -> None:
        source = read(path)
        if isinstance(source, Broken):
            self.broken[path] = source
            return
        self.sources[path] = source
        name = module_name(path)
        while name in self._by_name:
            name = f"~{name}"
        self._by_name[name] = path
        parts = name.split(".")
        for start in range(len(parts)):
            self._suffixes.setdefault(".".join(parts[start:]), []).append(name)
        outer = _root(path)
        for folder in [outer, *outer.parents][:FOLDERS_ABOVE]:
            parts.insert(0, folder.name)
            self._suffixes.setdefault(".".join(parts), []).append(name)

    @cached_property
    def modules(self) -> list[Module]:
        """The modules that have to do with Celery."""
        concerned = [name for name, path in self._by_name.items() if _concerns(self.sources[path])]
        return [module for name in concerned if (module := self._load(name)) is not None]

    @property
    def loaded(self) -> list[Module]:
        """Every module that was parsed so far."""
        return [module for module in self._modules.values() if module is not None]

    def parse_all(self) -> None:
        """Parse the files that nothing led to, so that broken ones are found."""
        for name in list(self._by_name):
            self._load(name)

    def forget(self) -> None:
        """Let go of all trees; a project knows nothing after it."""
        for module in self.loaded:
            module.forget()
        self._modules.clear()
        self._functions.clear()

    def _load(self, name: str) -> Module | None:
        if name not in self._modules:
            path = self._by_name[name]
            source = self.sources[path]
            tree = parse(source)
            if isinstance(tree, Broken):
                self.broken[path] = tree
                self._modules[name] = None
            else:
                is_package = path.stem == "__init__"
                self._modules[name] = Module(source, tree, name, is_package=is_package, resolver=self)
        return self._modules[name]

    def module(self, name: str, near: Module | None = None) -> Module | None:
        """The module that is imported as *name*, from *near*."""
        candidates = self._suffixes.get(name, [])
        if not candidates:
            return None
        if len(candidates) == 1 or near is None:
            return self._load(name if name in self._by_name else candidates[0])
        here = near.source.path.absolute().parts
        return self._load(max(candidates, key=lambda each: _shared(self._by_name[each].absolute().parts, here)))

    def resolve(self, name: str, near: Module | None = None) -> str:
        """Follow *name* through imports and assignments of the project to where it is defined."""
        key = (name, near.name if near is not None else "")
        known = self._resolved.get(key)
        if known is not None:
            return known
        self._resolved[key] = name  # a circle of imports ends here
        current = name
        for _ in range(MOST_HOPS):
            following = self._hop(current, near)
            if following is None or following == current:
                break
            current = following
        self._resolved[key] = current
        return current

    def _hop(self, name: str, near: Module | None) -> str | None:
        split = self._split(name, near)
        if split is None:
            return None
        module, rest = split
        head = re.match(r"\w+", rest)
        if head is None:
            return None
        meaning = module.names.get(head[0])
        own = f"{module.name}.{head[0]}"
        if meaning is None or meaning == own:
            return own + rest[head.end() :] if own + rest[head.end() :] != name else None
        return meaning + rest[head.end() :]

    def _split(self, name: str, near: Module | None = None) -> tuple[Module, str] | None:
        """The module that *name* begins with, and the rest of the name."""
        head = name.partition("(")[0].partition("[")[0]
        parts = head.split(".")
        for end in range(len(parts) - 1, 0, -1):
            prefix = ".".join(parts[:end])
            if prefix in self._suffixes:
                module = self.module(prefix, near)
                if module is not None:
                    return module, name[len(prefix) + 1 :]
        return None

    def function(self, name: str) -> Function | None:
        """The function or method of the project that *name* names."""
        if name not in self._functions:
            self._functions[name] = self._function(name)
        return self._functions[name]

    def _function(self, name: str) -> Function | None:
        split = self._split(self.resolve(name))
        if split is None:
            return None
        module, rest = split
        rest = rest.replace("()", "", 1) if rest.count("()") == 1 else rest
        found = module.functions.get(rest)
        if found is None and "." in rest:
            owner, _, method = rest.rpartition(".")
            cls = module.classes.get(owner)
            return self.method(cls, method) if cls is not None else None
        return found

    def knows(self, name: str) -> bool:
        """Tell whether the project defines the function *name*."""
        return self.function(name) is not None

    def cls(self, name: str) -> Class | None:
        """The class of the project that *name* names."""
        split = self._split(self.resolve(name))
        return split[0].classes.get(split[1]) if split is not None else None

    def lineage(self, cls: Class) -> Iterator[Class]:
        """*cls* and those of its bases that the project defines, nearest first."""
        pending, seen = [cls], set[str]()
        while pending and len(seen) < MOST_HOPS * 2:
            each = pending.pop(0)
            if each.name in seen:
                continue
            seen.add(each.name)
            yield each
            pending.extend(base for name in each.bases if (base := self.cls(name)) is not None)

    def ancestors(self, cls: Class) -> set[str]:
        """The resolved names of all bases, as far as the project knows them."""
        return {base for each in self.lineage(cls) for base in each.bases}

    def method(self, cls: Class, name: str) -> Function | None:
        """The method *name* of *cls*, its own or inherited."""
        return next((each.methods[name] for each in self.lineage(cls) if name in each.methods), None)

    def called(self, name: str, function: Function) -> Function | None:
        """The function of the project that a call of *name* in *function* leads to."""
        if not name or name.startswith("super"):
            return None
        if name.startswith("$task.") and function.owner is not None:
            return self.method(function.owner, name.removeprefix("$task."))
        return self.function(name)

    def constant(self, name: str) -> tuple[Module, ast.expr] | None:
        """The expression that a module-level name stands for, where it is assigned."""
        split = self._split(name)
        if split is None:
            return None
        module, rest = split
        if rest in module.constants:
            return module, module.constants[rest]
        owner, _, attribute = rest.rpartition(".")
        cls = module.classes.get(owner)
        if cls is not None and attribute in cls.attributes:
            return module, cls.attributes[attribute]
        meaning = module.names.get(rest)
        if meaning is None or meaning == name:
            return None
        following = self._split(meaning)
        return (following[0], following[0].constants[following[1]]) if self._has(following) and following else None

    @staticmethod
    def _has(split: tuple[Module, str] | None) -> bool:
        return split is not None and split[1] in split[0].constants

    def value(self, node: ast.expr | None, place: Module | Function) -> Any:
        """What *node* is worth in *place*; UNKNOWN where that cannot be told."""
        return self._numbers(place).value(node) if node is not None else UNKNOWN

    def _numbers(self, place: Module | Function) -> Numbers:
        module = place.module if isinstance(place, Function) else place
        scope = module.scope

        def name(each: ast.expr) -> str:
            return dotted(each, scope)

        def lookup(each: ast.expr) -> tuple[ast.expr, Numbers] | None:
            if isinstance(each, ast.Name):
                if isinstance(place, Function) and each.id in place.assigned:
                    values = place.assigned[each.id]
                    return (values[0], numbers) if len(values) == 1 else None
                if each.id in module.constants:
                    return module.constants[each.id], numbers
            found = self._constant_elsewhere(name(each))
            return (found[1], self._numbers(found[0])) if found is not None else None

        numbers = Numbers(lookup, name)
        return numbers

    def _constant_elsewhere(self, name: str) -> tuple[Module, ast.expr] | None:
        if name.startswith("django.conf.settings."):
            return self.django_setting(last(name))
        return self.constant(name)

    @cached_property
    def settings_modules(self) -> list[Module]:
        """The modules of Django settings."""
        paths = [
            name
            for name, path in self._by_name.items()
            if "settings" in path.stem or "settings" in path.parent.name or path.stem in {"celeryconfig", "config"}
        ]
        return [module for name in paths if (module := self._load(name)) is not None]

    def django_setting(self, name: str) -> tuple[Module, ast.expr] | None:
        """What the project's settings modules assign to *name*, and where, if they agree on one place."""
        values = [(module, module.constants[name]) for module in self.settings_modules if name in module.constants]
        return values[0] if len(values) == 1 else None

    def files_broken(self) -> Iterator[Found]:
        """One finding for each file that could not be checked."""
        for path, broken in self.broken.items():
            line = self.sources[path].line(broken.row) if path in self.sources else ""
            yield Found(path=path, span=Span.of_line(broken.row, line), message=f"the file {broken.reason}")


def _concerns(source: Source) -> bool:
    return "task" in source.path.stem or any(word in source.text for word in CONCERNS)


def module_name(path: Path) -> str:
    """The dotted name of a file, from the outermost folder that is a package."""
    root = _root(path)
    parts = path.absolute().relative_to(root).with_suffix("").parts
    kept = parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts
    return ".".join(kept)


def _root(path: Path) -> Path:
    folder = path.absolute().parent
    while (folder / "__init__.py").exists() and folder.name:
        folder = folder.parent
    return folder


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    same = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        same += 1
    return same
