"""What a run is asked to do: which rules, which files, which findings are known already.

Options of the command line go over `[tool.effectonce.check]` of the nearest `pyproject.toml`. A code may be given by
its beginning: `EO1` is the whole family of keys. Of `select` and `ignore` the longer one wins, as with Ruff.
"""

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

ALL: Final = "ALL"
_LISTS: Final = {"select", "extend-select", "ignore", "exclude"}
_KEYS: Final = {*_LISTS, "include-tests", "per-file-ignores", "baseline", "output-format"}


class OptionsInvalid(Exception):
    """The options of a run cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a run does; *root* is the folder that patterns and paths are relative to."""

    root: Path
    select: tuple[str, ...] = (ALL,)
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    include_tests: bool = False
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    baseline: Path | None = None
    output_format: str = "text"

    def covers(self, code: str) -> bool:
        """Tell whether findings of *code* are wanted."""
        chosen = _longest(code, self.select)
        return chosen > 0 and chosen >= _longest(code, self.ignore) + (1 if _longest(code, self.ignore) else 0)

    def covers_in(self, code: str, path: Path) -> bool:
        """Tell whether findings of *code* are wanted in *path*."""
        return not any(
            _longest(code, codes) and self._matches(path, pattern) for pattern, codes in self.per_file_ignores.items()
        )

    def excludes(self, path: Path) -> bool:
        """Tell whether *path* is left out."""
        return any(self._matches(path, pattern) for pattern in self.exclude)

    def _matches(self, path: Path, pattern: str) -> bool:
        absolute = path.absolute()
        try:
            relative = absolute.relative_to(self.root).as_posix()
        except ValueError:
            relative = absolute.as_posix()
        return (
            fnmatch(relative, pattern)
            or fnmatch(relative, f"{pattern.rstrip('/')}/*")
            or ("/" not in pattern and any(fnmatch(part, pattern) for part in Path(relative).parts))
        )


def _longest(code: str, prefixes: Sequence[str]) -> int:
    """How long the longest of *prefixes* is that covers *code*; 1 for ALL, 0 for none."""
    lengths = [
        1 if prefix == ALL else len(prefix) + 1 for prefix in prefixes if prefix == ALL or code.startswith(prefix)
    ]
    return max(lengths, default=0)


def from_project(start: Path, config: Path | None = None) -> Options:
    """Read the options of the project that *start* belongs to, or those of the file *config*."""
    files = [config] if config is not None else [folder / "pyproject.toml" for folder in [start, *start.parents]]
    for file in files:
        if config is None and not file.is_file():
            continue
        table = _table(file)
        if table is not None:
            return _options(table, file)
    return Options(root=Path.cwd())


def _table(file: Path) -> dict[str, Any] | None:
    try:
        tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
    except OSError as error:
        reason = f"{file}: {error.strerror or error}"
        raise OptionsInvalid(reason) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        reason = f"{file}: {error}"
        raise OptionsInvalid(reason) from error
    table = tool.get("effectonce", {}).get("check") if isinstance(tool, dict) else None
    return table if isinstance(table, dict) else None


def _options(table: dict[str, Any], file: Path) -> Options:
    for key in table:
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(_KEYS))}"
            reason = f"{file}: [tool.effectonce.check] has no option {key!r}{hint}"
            raise OptionsInvalid(reason)
    lists = {key: _strings(table[key], key, file) for key in _LISTS if key in table}
    ignores = table.get("per-file-ignores", {})
    if not isinstance(ignores, dict):
        reason = f"{file}: per-file-ignores must be a table of patterns"
        raise OptionsInvalid(reason)
    options = Options(
        root=file.parent.absolute(),
        select=(*lists.get("select", (ALL,)), *lists.get("extend-select", ())),
        ignore=lists.get("ignore", ()),
        exclude=lists.get("exclude", ()),
        include_tests=_switch(table.get("include-tests", False), "include-tests", file),
        per_file_ignores={pattern: _strings(codes, pattern, file) for pattern, codes in ignores.items()},
        output_format=_string(table.get("output-format", "text"), "output-format", file),
    )
    if "baseline" in table:
        options = replace(options, baseline=file.parent / _string(table["baseline"], "baseline", file))
    return options


def _string(value: Any, key: str, file: Path) -> str:
    if not isinstance(value, str):
        reason = f"{file}: {key} must be a text"
        raise OptionsInvalid(reason)
    return value


def _switch(value: Any, key: str, file: Path) -> bool:
    if not isinstance(value, bool):
        reason = f"{file}: {key} must be true or false"
        raise OptionsInvalid(reason)
    return value


def _strings(value: Any, key: str, file: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        reason = f"{file}: {key} must be a list of texts"
        raise OptionsInvalid(reason)
    return tuple(value)


def check_codes(options: Options, codes: Sequence[str]) -> None:
    """Refuse a selection that names no rule."""
    ignored = [code for group in options.per_file_ignores.values() for code in group]
    for given in [*options.select, *options.ignore, *ignored]:
        if given != ALL and not any(code.startswith(given) for code in codes):
            near = difflib.get_close_matches(given, codes, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            reason = f"no rule is named {given!r}{hint}"
            raise OptionsInvalid(reason)
