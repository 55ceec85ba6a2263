"""Small projects for tests: files by name, and what is found in them."""

from pathlib import Path
from textwrap import dedent

from effectonce.checker.files import collect
from effectonce.checker.options import Options
from effectonce.checker.run import check
from effectonce.checker.survey import Survey


def lay(folder: Path, **files: str) -> Path:
    """Write *files*; `shop__tasks` is `shop/tasks.py`, a name with a point or a capital letter is taken as it is."""
    for name, text in files.items():
        path = folder / (name if "." in name or name.istitle() else name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return folder


def survey(folder: Path) -> Survey:
    return Survey.of(*collect([folder], Options(root=folder)))


def found(folder: Path, *, select: str = "ALL") -> list[tuple[str, int]]:
    """Code and row of each finding."""
    options = Options(root=folder, select=(select,))
    return [(finding.code, finding.span.row) for finding in check([folder], options)]
