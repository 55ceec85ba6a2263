"""The settings of Celery, wherever the project keeps them.

`app.conf.x = ...`, `app.conf.update(...)`, the module or class of `config_from_object`, `celeryconfig.py`, Django's
settings with a namespace, Flask's mappings, arguments of `Celery(...)`, in new and in old names. Of several values the
one that stands nearest to the asking module counts; where the nearest ones differ, the value is not known.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from effectonce.checker.module import Class, Module
from effectonce.checker.names import dotted, last
from effectonce.checker.numbers import UNKNOWN, seconds
from effectonce.checker.project import Project

OLD: Final = {
    "CELERY_ACKS_LATE": "task_acks_late",
    "CELERY_ANNOTATIONS": "task_annotations",
    "CELERY_IGNORE_RESULT": "task_ignore_result",
    "CELERY_RESULT_BACKEND": "result_backend",
    "CELERY_ALWAYS_EAGER": "task_always_eager",
    "CELERYD_TASK_TIME_LIMIT": "task_time_limit",
    "CELERYD_TASK_SOFT_TIME_LIMIT": "task_soft_time_limit",
    "CELERYD_PREFETCH_MULTIPLIER": "worker_prefetch_multiplier",
    "CELERYD_POOL": "worker_pool",
    "CELERYBEAT_SCHEDULE": "beat_schedule",
    "CELERYBEAT_SCHEDULER": "beat_scheduler",
    "CELERYBEAT_MAX_LOOP_INTERVAL": "beat_max_loop_interval",
    "BROKER_URL": "broker_url",
    "BROKER_TRANSPORT_OPTIONS": "broker_transport_options",
    "CELERY_REDBEAT_LOCK_TIMEOUT": "redbeat_lock_timeout",
    "REDBEAT_LOCK_TIMEOUT": "redbeat_lock_timeout",
    "REDBEAT_LOCK_KEY": "redbeat_lock_key",
    "CELERY_TASK_SERIALIZER": "task_serializer",
    "CELERY_ACCEPT_CONTENT": "accept_content",
}
_PREFIXES: Final = ("task_", "worker_", "broker_", "result_", "beat_", "redbeat_", "effectonce_", "control_", "event_")
_CONFIG_MODULE: Final = re.compile(r"(^|\.)(celery_?config|celery_?conf|celery_?settings)$")
_CONFIG_CLASS: Final = re.compile(r"celery.*(conf|settings)|(conf|settings).*celery", re.IGNORECASE)
_MAPPINGS: Final = {"CELERY", "CELERY_CONFIG", "CELERY_CONF", "CELERY_SETTINGS"}
_APP_ARGUMENTS: Final = {"broker": "broker_url", "backend": "result_backend", "task_cls": "task_cls"}
_TESTS: Final = re.compile(r"(^|/)(tests?|testing|conftest\.py|test_[^/]*)(/|$)")
DEFAULT_VISIBILITY: Final = {"redis": 3600.0, "sqs": 1800.0}


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """One place where a setting is given."""

    name: str
    module: Module
    node: ast.expr
    place: ast.AST


class Configuration:
    """Every setting of the project."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._namespaces = {"CELERY"}
        self._named_modules: set[str] = set()
        self._named_classes: set[str] = set()
        self._values: dict[tuple[str, Path | None], Any] = {}

    @cached_property
    def settings(self) -> dict[str, list[Setting]]:
        """All places by the name of the setting."""
        out: dict[str, list[Setting]] = {}
        modules = list(self._project.modules)
        for module in modules:
            self._find_objects(module)
        named = [self._project.module(name) for name in sorted(self._named_modules)]
        concerned = [*modules, *self._project.settings_modules, *(each for each in named if each is not None)]
        for module in dict.fromkeys(concerned):
            for setting in self._of_module(module):
                out.setdefault(setting.name, []).append(setting)
        return out

    def places(self, name: str, near: Module | None = None) -> list[Setting]:
        """Where *name* is given, nearest to *near* first; tests only count for themselves."""
        found = self.settings.get(name, [])
        here = near.source.path if near is not None else None
        if here is None or not _TESTS.search(_inner(here, found)):
            found = [each for each in found if not _TESTS.search(each.module.source.path.as_posix())] or found
        if here is None:
            return found
        return sorted(found, key=lambda each: _distance(each.module.source.path, here))

    def nearest(self, name: str, near: Module | None = None) -> list[Setting]:
        """The places of *name* that are equally near."""
        found = self.places(name, near)
        if not found or near is None:
            return found
        here = near.source.path
        least = _distance(found[0].module.source.path, here)
        return [each for each in found if _distance(each.module.source.path, here) == least]

    def value(self, name: str, near: Module | None = None) -> Any:
        """What *name* is set to for *near*; None where nobody sets it, UNKNOWN where places differ."""
        key = (name, near.source.path if near is not None else None)
        if key not in self._values:
            self._values[key] = self._agreed(name, near)
        return self._values[key]

    def _agreed(self, name: str, near: Module | None) -> Any:
        values = [self._project.value(each.node, each.module) for each in self.nearest(name, near)]
        if not values:
            return None
        first = values[0]
        return first if all(each == first for each in values) else UNKNOWN

    def transport_option(self, name: str, near: Module | None = None) -> Any:
        """What `broker_transport_options` says of *name*; None where it does not."""
        options = self.value("broker_transport_options", near)
        if options is UNKNOWN:
            return UNKNOWN
        return options.get(name) if isinstance(options, dict) else None

    def broker(self, near: Module | None = None) -> str | None:
        """The kind of broker: redis, amqp, sqs, another one's scheme, or None where it is not known."""
        url = self.value("broker_url", near)
        if isinstance(url, list) and url:
            url = url[0]
        if not isinstance(url, str) or "://" not in url:
            return None
        scheme = url.partition("://")[0].lower()
        kinds = {"rediss": "redis", "valkey": "redis", "sentinel": "redis", "amqps": "amqp", "pyamqp": "amqp"}
        return kinds.get(scheme, scheme)

    def visibility(self, near: Module | None = None) -> float | None:
        """After how many seconds the broker hands a message out again; None where it does not, or it is not known."""
        given = self.transport_option("visibility_timeout", near)
        broker = self.broker(near)
        if broker is not None and broker not in DEFAULT_VISIBILITY:
            return None
        if given is None:
            return DEFAULT_VISIBILITY.get(broker or "")
        return seconds(given)

    def _of_module(self, module: Module) -> Iterator[Setting]:
        plain = _CONFIG_MODULE.search(module.name.lstrip("~")) is not None or module.name in self._named_modules
        for name, node in module.constants.items():
            yield from self._of_name(name, node, module, plain=plain)
        for cls in module.classes.values():
            named = cls.name in self._named_classes or _CONFIG_CLASS.search(cls.node.name) is not None
            for name, node in cls.attributes.items():
                yield from self._of_name(name, node, module, plain=named)
        if "conf" in module.source.text or "Celery(" in module.source.text:
            for statement in _statements(module.tree):
                yield from self._of_statement(statement, module)

    def _of_name(self, name: str, node: ast.expr, module: Module, *, plain: bool) -> Iterator[Setting]:
        if name in _MAPPINGS:
            yield from self._of_mapping(node, module)
        known = self._canonical(name, plain=plain)
        if known is not None:
            yield Setting(known, module, node, node)

    def _canonical(self, name: str, *, plain: bool) -> str | None:
        if name in OLD:
            return OLD[name]
        for namespace in self._namespaces:
            if name.startswith(namespace + "_"):
                inner = name.removeprefix(namespace + "_")
                return OLD.get(inner) or inner.lower()
        if plain and name.islower() and (name.startswith(_PREFIXES) or name in {"accept_content", "include"}):
            return name
        return None

    def _of_mapping(self, node: ast.expr, module: Module) -> Iterator[Setting]:
        pairs: Iterable[tuple[str | None, ast.expr]] = ()
        match node:
            case ast.Dict(keys=keys, values=values):
                pairs = [
                    (key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None, value)
                    for key, value in zip(keys, values, strict=True)
                ]
            case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
                pairs = [(each.arg, each.value) for each in keywords]
            case _:
                return
        for name, value in pairs:
            if name is not None:
                yield Setting(self._canonical(name, plain=True) or name.lower(), module, value, value)

    def _of_statement(self, statement: ast.stmt, module: Module) -> Iterator[Setting]:
        match statement:
            case ast.Assign(targets=[ast.Attribute(value=ast.Attribute(attr="conf"), attr=name)], value=value):
                yield Setting(self._canonical(name, plain=False) or name, module, value, statement)
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Attribute(attr="conf"), slice=ast.Constant(value=str(name)))],
                value=value,
            ):
                yield Setting(self._canonical(name, plain=False) or name, module, value, statement)
            case ast.Expr(value=ast.Call() as call) | ast.Assign(value=ast.Call() as call):
                yield from self._of_call(call, module)
            case ast.Return(value=ast.Call() as call):
                yield from self._of_call(call, module)
            case _:
                return

    def _of_call(self, call: ast.Call, module: Module) -> Iterator[Setting]:
        match call.func:
            case ast.Attribute(attr="update", value=ast.Attribute(attr="conf")):
                yield from self._of_update(call, module)
            case ast.Attribute(attr="from_mapping" | "update"):
                for each in call.keywords:
                    if each.arg in _MAPPINGS:
                        yield from self._of_mapping(each.value, module)
            case ast.Name() | ast.Attribute() if last(dotted(call.func, module.scope)) == "Celery":
                for each in call.keywords:
                    if each.arg in _APP_ARGUMENTS:
                        yield Setting(_APP_ARGUMENTS[each.arg], module, each.value, each.value)
            case _:
                return

    def _of_update(self, call: ast.Call, module: Module) -> Iterator[Setting]:
        for each in call.keywords:
            if each.arg is not None:
                yield Setting(self._canonical(each.arg, plain=False) or each.arg, module, each.value, each)
            else:
                yield from self._of_mapping(each.value, module)
        for argument in call.args:
            yield from self._of_mapping(self._constant(argument, module), module)

    def _constant(self, node: ast.expr, module: Module) -> ast.expr:
        return module.constants.get(node.id, node) if isinstance(node, ast.Name) else node

    def _find_objects(self, module: Module) -> None:
        """Remember what `config_from_object` names, and under which namespace."""
        if "config_from_object" not in module.source.text:
            return
        for statement in _statements(module.tree):
            match statement:
                case ast.Expr(value=ast.Call(func=ast.Attribute(attr="config_from_object")) as call):
                    self._remember(call, module)
                case _:
                    pass

    def _remember(self, call: ast.Call, module: Module) -> None:
        for each in call.keywords:
            if each.arg == "namespace" and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str):
                self._namespaces.add(each.value.value.upper())
        if not call.args:
            return
        target = self._project.value(call.args[0], module)
        name = target.replace(":", ".") if isinstance(target, str) else dotted(call.args[0], module.scope)
        cls: Class | None = self._project.cls(name) if name else None
        named = self._project.module(name, module) if name else None
        if cls is not None:
            self._named_classes.add(cls.name)
        elif named is not None:
            self._named_modules.add(named.name)


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            for each in getattr(node, block, None) or ():
                pending.append(each)
                if isinstance(each, ast.stmt):
                    yield each


def _inner(path: Path, found: list[Setting]) -> str:
    """The part of *path* below the folder that it shares with the settings."""
    shared = min((_common(path, each.module.source.path) for each in found), default=0)
    return "/".join(path.absolute().parts[shared:])


def _common(one: Path, other: Path) -> int:
    same = 0
    for mine, theirs in zip(one.absolute().parts, other.absolute().parts, strict=False):
        if mine != theirs:
            break
        same += 1
    return same


def _distance(path: Path, here: Path) -> int:
    """How far two files are apart: 0 for the same one, then the folders from the nearer file up to a shared one."""
    if path == here:
        return 0
    return 1 + len(here.absolute().parts) - 1 - _common(path, here)
