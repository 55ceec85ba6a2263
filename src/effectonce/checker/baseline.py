"""Findings that are known already: they are not shown again until their line changes.

A finding is remembered by file, code and the text of its line, so that it is known also after lines were added above.
"""

import json
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

from effectonce.checker.findings import Finding
from effectonce.checker.options import OptionsInvalid

VERSION: Final = 1


def fingerprint(finding: Finding, root: Path) -> str:
    """What a finding is remembered by: hex, the same wherever the project lies."""
    text = "\0".join([shown(finding.path, root), finding.code, " ".join(finding.line.split())])
    return sha256(text.encode(errors="replace")).hexdigest()[:32]


def shown(path: Path, root: Path) -> str:
    """*path* as seen from *root*, with slashes."""
    absolute = path.absolute()
    return absolute.relative_to(root).as_posix() if absolute.is_relative_to(root) else absolute.as_posix()


def load(file: Path) -> Counter[str]:
    """How often each known finding is known."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["version"] != VERSION:
            reason = f"{file}: is a baseline of version {content['version']}; this one reads {VERSION}"
            raise OptionsInvalid(reason)
        return Counter({str(each["fingerprint"]): int(each["count"]) for each in content["findings"]})
    except OSError as error:
        reason = f"{file}: {error.strerror or error}; --write-baseline makes it"
        raise OptionsInvalid(reason) from error
    except (ValueError, KeyError, TypeError) as error:
        reason = f"{file}: is no baseline"
        raise OptionsInvalid(reason) from error


def save(file: Path, findings: Iterable[Finding], root: Path) -> None:
    """Remember *findings*, sorted, so that two baselines can be compared."""
    counted: Counter[tuple[str, str, str]] = Counter(
        (shown(each.path, root), each.code, fingerprint(each, root)) for each in findings
    )
    rows = [
        {"filename": path, "code": code, "fingerprint": mark, "count": count}
        for (path, code, mark), count in sorted(counted.items())
    ]
    file.write_text(json.dumps({"version": VERSION, "findings": rows}, indent=2) + "\n", encoding="utf-8")


def unknown(findings: Iterable[Finding], known: Counter[str], root: Path) -> list[Finding]:
    """Those of *findings* that are not known, or more often than known."""
    left = Counter(known)
    out = []
    for finding in findings:
        mark = fingerprint(finding, root)
        if left[mark] > 0:
            left[mark] -= 1
        else:
            out.append(finding)
    return out
