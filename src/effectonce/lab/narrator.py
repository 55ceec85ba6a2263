"""Tells a person what a long run does: a bar and lines on a terminal (with rich), plain lines in a pipe."""

import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Protocol, Self, TextIO

QUIET_SECONDS = 5.0


class Narrator(Protocol):
    """Speaks from ``with`` to its end."""

    def __enter__(self) -> Self:
        """Begin; time counts from here."""
        ...

    def __exit__(self, *_: object) -> None:
        """Take the bar away; lines stay."""
        ...

    def say(self, line: str) -> None:
        """Tell what has just happened."""
        ...

    def progress(self, done: int, total: int) -> None:
        """Tell how far it is."""
        ...

    def table(self, head: Sequence[str], rows: Mapping[str, Sequence[int]]) -> None:
        """Show numbers, one row a name, one column a word of *head*."""
        ...

    def text(self, line: str = "") -> None:
        """Show a line without the time."""
        ...


def narrator(stream: TextIO | None = None) -> Narrator:
    """Return what fits *stream*, by default the standard output."""
    out = stream or sys.stdout
    if out.isatty() and find_spec("rich"):
        return RichNarrator(out)
    return PlainNarrator(out)


class PlainNarrator:
    """Lines of plain text; how far it is at most every few seconds."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._began = time.monotonic()
        self._spoke = self._began

    def __enter__(self) -> Self:
        """Begin."""
        self._began = self._spoke = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left to end."""

    def say(self, line: str) -> None:
        """Print the line with the seconds since the begin."""
        self._spoke = time.monotonic()
        self.text(f"[{self._spoke - self._began:3.0f} s] {line}")

    def progress(self, done: int, total: int) -> None:
        """Print how far it is unless something was said lately."""
        if time.monotonic() - self._spoke > QUIET_SECONDS:
            self.say(f"{done} of {total} messages answered")

    def table(self, head: Sequence[str], rows: Mapping[str, Sequence[int]]) -> None:
        """Print columns, numbers to the right."""
        first = max(len(name) for name in rows)
        widths = [max(len(word), 8) for word in head]
        self.text(" " * first + "".join(f"  {word:>{width}}" for word, width in zip(head, widths, strict=True)))
        for name, numbers in rows.items():
            cells = "".join(f"  {number:>{width}}" for number, width in zip(numbers, widths, strict=True))
            self.text(f"{name:<{first}}{cells}")

    def text(self, line: str = "") -> None:
        """Print a line."""
        print(line, file=self._out, flush=True)


class RichNarrator:
    """A bar that moves under the lines."""

    def __init__(self, out: TextIO) -> None:
        from rich.console import Console  # noqa: PLC0415 - rich is an extra
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        self._console = Console(file=out, highlight=False)
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("messages answered"), TimeElapsedColumn())
        self._bar = Progress(*columns, console=self._console, transient=True)
        self._task = self._bar.add_task("", total=None)
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        """Show the bar."""
        self._began = time.monotonic()
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        self._bar.stop()

    def say(self, line: str) -> None:
        """Print the line above the bar."""
        self._console.print(f"{time.monotonic() - self._began:3.0f} s  {line}", markup=False, soft_wrap=True)

    def progress(self, done: int, total: int) -> None:
        """Move the bar."""
        self._bar.update(self._task, completed=done, total=total)

    def table(self, head: Sequence[str], rows: Mapping[str, Sequence[int]]) -> None:
        """Print a table."""
        from rich.table import Table  # noqa: PLC0415 - rich is an extra

        table = Table("")
        for word in head:
            table.add_column(word, justify="right")
        for name, numbers in rows.items():
            table.add_row(name, *(str(number) for number in numbers))
        self._console.print(table)

    def text(self, line: str = "") -> None:
        """Print a line."""
        self._console.print(line, markup=False, soft_wrap=True)
