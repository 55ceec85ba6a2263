"""`effectonce check`: the checker on the command line.

Exit codes are Ruff's: 0 nothing was found, 1 something was, 2 the run could not be made.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from effectonce.checker import baseline
from effectonce.checker.findings import Finding
from effectonce.checker.options import Options, OptionsInvalid, from_project
from effectonce.checker.pages import page
from effectonce.checker.reports import FORMATS, Report
from effectonce.checker.rules import all_rules
from effectonce.checker.run import check as find

FOUND = 1
INVALID = 2


class Codes(click.ParamType[tuple[str, ...]]):
    """Codes or their beginnings, with commas between them."""

    name = "codes"

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None) -> tuple[str, ...]:
        """Split what was given."""
        return value if isinstance(value, tuple) else tuple(each.strip() for each in value.split(",") if each.strip())


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--select", type=Codes(), multiple=True, metavar="CODES", help="Only these rules: EO102, EO1 or ALL.")
@click.option("--extend-select", type=Codes(), multiple=True, metavar="CODES", help="These rules too.")
@click.option("--ignore", type=Codes(), multiple=True, metavar="CODES", help="Not these rules.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave out these files and folders.")
@click.option("--include-tests", is_flag=True, help="Read tests and migrations too.")
@click.option(
    "--per-file-ignores", multiple=True, metavar="PATTERN:CODE", help="Ignore a rule in files, such as 'tests/*:EO5'."
)
@click.option("--output-format", type=click.Choice(list(FORMATS)), help="text is the default.")
@click.option("-o", "--output-file", type=click.Path(path_type=Path), help="Write there instead of to the terminal.")
@click.option("--config", type=click.Path(path_type=Path), help="Another pyproject.toml than the nearest one.")
@click.option("--baseline", "baseline_file", type=click.Path(path_type=Path), help="Leave out what this file knows.")
@click.option("--write-baseline", is_flag=True, help="Write all findings into the file of --baseline.")
@click.option("--statistics", is_flag=True, help="Count findings by rule instead of listing them.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 also when something was found.")
@click.option("--explain", metavar="CODE", help="Print the page of a rule.")
@click.option("--rules", "list_rules", is_flag=True, help="List all rules.")
def check(paths: tuple[Path, ...], **given: Any) -> None:
    """Find the duplicates before they happen.

    Reads Python code and deployment files under PATHS (default: here) and runs nothing of them. Options also stand in
    [tool.effectonce.check] of pyproject.toml; `# noqa: EO102` silences one line.

    Exit code: 0 if nothing was found, 1 if something was, 2 if the run could not be made.
    """
    if given["explain"] is not None:
        _explain(given["explain"])
        return
    if given["list_rules"]:
        _list_rules()
        return
    try:
        findings = _run(paths or (Path(),), given)
    except OptionsInvalid as error:
        click.echo(f"effectonce check: {error}", err=True)
        sys.exit(INVALID)
    sys.exit(FOUND if findings and not given["exit_zero"] else 0)


def _run(paths: Sequence[Path], given: dict[str, Any]) -> Sequence[Finding]:
    options = _options(paths, given)
    findings = find(paths, options)
    if options.baseline is not None:
        if given["write_baseline"]:
            baseline.save(options.baseline, findings, options.root)
            click.echo(f"{options.baseline}: {len(findings)} findings are known now", err=True)
            return ()
        findings = baseline.unknown(findings, baseline.load(options.baseline), options.root)
    _write(findings, options, given)
    return findings


def _options(paths: Sequence[Path], given: dict[str, Any]) -> Options:
    start = paths[0].absolute()
    options = from_project(start if start.is_dir() else start.parent, given["config"])
    select = [code for group in given["select"] for code in group]
    more = [code for group in given["extend_select"] for code in group]
    ignore = [code for group in given["ignore"] for code in group]
    ignores = dict(options.per_file_ignores)
    for each in given["per_file_ignores"]:
        pattern, colon, codes = each.rpartition(":")
        if not colon or not pattern:
            reason = f"--per-file-ignores {each!r} is not PATTERN:CODE"
            raise OptionsInvalid(reason)
        ignores[pattern] = (*ignores.get(pattern, ()), *(code.strip() for code in codes.split(",")))
    if given["write_baseline"] and given["baseline_file"] is None and options.baseline is None:
        reason = "--write-baseline needs --baseline FILE"
        raise OptionsInvalid(reason)
    return replace(
        options,
        select=(*(select or options.select), *more),
        ignore=(*options.ignore, *ignore) if not select else tuple(ignore),
        exclude=(*options.exclude, *given["exclude"]),
        include_tests=options.include_tests or given["include_tests"],
        per_file_ignores=ignores,
        baseline=given["baseline_file"] or options.baseline,
        output_format=given["output_format"] or options.output_format,
    )


def _write(findings: Sequence[Finding], options: Options, given: dict[str, Any]) -> None:
    if options.output_format not in FORMATS:
        reason = f"output-format {options.output_format!r} is none of {', '.join(FORMATS)}"
        raise OptionsInvalid(reason)
    if given["statistics"]:
        text = _statistics(findings, options)
    else:
        text = FORMATS[options.output_format](Report(findings=findings, rules=all_rules(), root=options.root))
    if given["output_file"] is not None:
        given["output_file"].write_text(text, encoding="utf-8")
    else:
        click.echo(text, nl=False)


def _statistics(findings: Sequence[Finding], options: Options) -> str:
    counted = Counter((finding.code, finding.name) for finding in findings).most_common()
    if options.output_format == "json":
        import json  # noqa: PLC0415 - one format of one option

        rows = [{"code": code, "name": name, "count": count} for (code, name), count in counted]
        return json.dumps(rows, indent=2) + "\n"
    return "".join(f"{count:>6}  {code}  {name}\n" for (code, name), count in counted)


def _explain(code: str) -> None:
    text = page(code.upper())
    if text is None:
        click.echo(f"effectonce check: no rule is named {code!r}; --rules lists them", err=True)
        sys.exit(INVALID)
    click.echo(text, nl=False)


def _list_rules() -> None:
    for rule in all_rules():
        click.echo(f"{rule.code}  {rule.name:<34} {rule.severity.value:<8} {rule.summary}")
