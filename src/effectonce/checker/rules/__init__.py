"""The rules, one a file; each file ends with its `RULE`."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from effectonce.checker.rule import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order of codes."""
    modules = [import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__)]
    return tuple(sorted((module.RULE for module in modules), key=lambda rule: rule.code))
