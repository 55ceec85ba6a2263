"""One run of the checker, from paths to findings."""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from effectonce.checker.files import collect
from effectonce.checker.findings import Finding, Found, Severity
from effectonce.checker.options import Options, check_codes
from effectonce.checker.rule import Rule
from effectonce.checker.rules import all_rules
from effectonce.checker.source import Source
from effectonce.checker.survey import Survey


def check(paths: Sequence[Path], options: Options) -> list[Finding]:
    """Check what is under *paths*, and give the findings in the order of files and places."""
    rules = all_rules()
    check_codes(options, [rule.code for rule in rules])
    python, other = collect(paths, options)
    with _prepared():
        survey = Survey.of(python, other)
        try:
            return survey_findings(survey, [rule for rule in rules if options.covers(rule.code)], options)
        finally:
            survey.project.forget()


def survey_findings(survey: Survey, rules: Sequence[Rule], options: Options) -> list[Finding]:
    """What *rules* find in *survey*, without what is silenced, each place once a rule."""
    survey.project.parse_all()
    out: dict[tuple[str, Path, int, int], Finding] = {}
    for rule in rules:
        for found in rule.check(survey):
            source = survey.source(found.path)
            if options.covers_in(rule.code, found.path) and not _is_silenced(rule, found, source):
                line = source.line(found.span.row) if source is not None else ""
                finding = rule.finding(found, line)
                if _is_by_hand(found.path):
                    finding = replace(finding, severity=Severity.ADVICE)
                out.setdefault((rule.code, found.path, found.span.row, found.span.column), finding)
    return sorted(out.values(), key=lambda finding: finding.order)


def _is_by_hand(path: Path) -> bool:
    """Tell whether a person runs it and sees what comes of it: a command of Django's `manage.py`."""
    return path.parts[-3:-1] == ("management", "commands")


def _is_silenced(rule: Rule, found: Found, source: Source | None) -> bool:
    rows = {found.span.row, found.span.end_row}
    return source is not None and any(source.silences(row, rule.code) for row in rows)


RULES_RECURSION: Final = 60_000


@contextmanager
def _prepared() -> Iterator[None]:
    """Pause the collector of cycles, and let rules write down every tree that the parser takes.

    Trees hold no cycles, and the collector would walk all of them again and again. What holds them does, so that is
    forgotten before the collector is back.
    """
    was_on = gc.isenabled()
    limit = sys.getrecursionlimit()
    gc.disable()
    sys.setrecursionlimit(max(limit, RULES_RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        if was_on:
            gc.enable()
