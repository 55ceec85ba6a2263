"""The table as plain text, and what is wrong in our own column."""

from collections.abc import Iterator

from effectonce.lab.contenders import CONTENDERS, OURS
from effectonce.lab.results.report import Report, cell
from effectonce.lab.scenarios import SCENARIOS


def table(report: Report) -> Iterator[str]:
    """Yield the lines: one a scenario, one column a contender, groups as headings."""
    names = report.contenders
    cells = {each: [cell(report.row(each, name)) for name in names] for each in report.scenarios}
    first = max((len(each) for each in cells), default=0) + 4
    widths = [max(len(name), *(len(row[index]) for row in cells.values())) for index, name in enumerate(names)]
    yield " " * first + "  ".join(f"{name:<{width}}" for name, width in zip(names, widths, strict=True)).rstrip()
    group = ""
    for each, row in cells.items():
        if each in SCENARIOS and SCENARIOS[each].group != group:
            group = SCENARIOS[each].group
            yield group
        told = "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True))
        yield f"  {each:<{first - 2}}{told}".rstrip()


def verdict(report: Report) -> Iterator[str]:
    """Yield what there is to say of our own column, and of what was not tried."""
    missing = {row["missing"] for row in report.rows if "missing" in row}
    for each in sorted(missing):
        yield f"not tried, for want of {each}"
    for row in report.wrong:
        yield f"WRONG: effectonce in {row['scenario']}: {cell(row)}"
        yield from (f"  {line}" for line in (row["outcome"].get("broken") or "").splitlines())
    for row in report.rows:
        if list(row.get("words", ())) == ["broken"] and row not in report.wrong:
            said = (row["outcome"].get("broken") or "").strip().splitlines() or [""]
            yield f"could not be carried out: {row['scenario']} with {CONTENDERS[row['contender']].title}: {said[-1]}"
    if OURS in report.contenders and not report.wrong:
        yield "effectonce: everything took effect once, in every row that was tried"
