"""``effectonce bench``: the measurements of the documentation, run again from a checkout of the project."""

import ast
import subprocess
import sys
from pathlib import Path

import click


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--list", "lists", is_flag=True, help="Name the benchmarks, and what each measures.")
@click.option("--checkout", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Where the project is.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[NAME]... [OPTIONS OF THE BENCHMARK]...")
def bench(*, lists: bool, checkout: Path | None, words: tuple[str, ...]) -> None:
    """Measure what the guard costs, beside bare Celery and beside other libraries.

    `effectonce bench costs raw` runs two of them, `effectonce bench rivals --brokers redis --rounds 3` one with options
    of its own; `effectonce bench rivals --help` shows these. The figures go to bench/results in the checkout, with the
    machine, its load and the versions.

    The benchmarks start servers and fetch other libraries, so they are in the project's sources and not in what is
    installed: run this inside a checkout, or name one. Exit code: that of the benchmark; 2 without a checkout.
    """
    root = _checkout(checkout or Path.cwd())
    if lists:
        for name, about in _names(root).items():
            click.echo(f"{name:<10} {about}")
        return
    cut = next((at for at, word in enumerate(words) if word.startswith("-")), len(words))
    command = [sys.executable, "-m", "bench", *words[:cut], "--", *words[cut:]]
    sys.exit(subprocess.run(command, cwd=root, check=False).returncode)  # noqa: S603 - the user's own words


def _checkout(place: Path) -> Path:
    """The checkout that *place* is in."""
    for folder in (place.absolute(), *place.absolute().parents):
        if (folder / "bench" / "__main__.py").is_file() and (folder / "src" / "effectonce").is_dir():
            return folder
    message = (
        "the benchmarks are in the project's sources: run this in a checkout of effectonce, or name one by --checkout"
    )
    raise click.UsageError(message)


def _names(root: Path) -> dict[str, str]:
    """The benchmarks there are, with the first line of each; read, not imported."""
    files = sorted((root / "bench").glob("*.py"))
    return {file.stem: _first_line(file) for file in files if "\ndef main(words" in file.read_text()}


def _first_line(file: Path) -> str:
    words = ast.get_docstring(ast.parse(file.read_text())) or ""
    return words.partition("\n")[0]
