"""Tasks that carry a policy of effectonce."""

import ast
from collections.abc import Iterator

from effectonce.checker.names import dotted, last
from effectonce.checker.survey import Survey
from effectonce.checker.tasks import Task


def transactional(survey: Survey) -> Iterator[Task]:
    """The tasks whose body runs in the ledger's transaction, as long as they allow no escape."""
    for task in survey.tasks:
        found = task.expression("once")
        if found is None or not isinstance(found[1], ast.Call):
            continue
        named = last(dotted(found[1].func, found[0].scope)) == "Transactional"
        if named and not any(each.arg == "allow_escape" for each in found[1].keywords):
            yield task
