"""What the tables of the project keep unique, as far as their classes say.

Django's `unique=True`, `primary_key=True`, `unique_together`, `UniqueConstraint`; SQLAlchemy's `unique=True`,
`primary_key=True`, `UniqueConstraint`, unique `Index`. A class that the project does not define says nothing.
"""

import ast
from collections.abc import Iterator

from effectonce.checker.module import Class
from effectonce.checker.names import last
from effectonce.checker.survey import Survey


def uniques(name: str, survey: Survey) -> list[frozenset[str]] | None:
    """The sets of columns that are unique in the model *name*; None where the model is not known."""
    cls = survey.project.cls(name)
    if cls is None:
        return None
    lineage = list(survey.project.lineage(cls))
    out = [frozenset({column}) for column in ("pk", "id")]
    for each in lineage:
        out.extend(_of_columns(each))
        out.extend(_of_tables(each))
    return out


def is_covered(columns: set[str], unique: list[frozenset[str]]) -> bool:
    """Tell whether some unique set of columns is among *columns*."""
    plain = {column.partition("__")[0] for column in columns}
    plain |= {column.removesuffix("_id") for column in plain} | {column + "_id" for column in plain}
    return any(each <= plain for each in unique)


def _of_columns(cls: Class) -> Iterator[frozenset[str]]:
    for name, value in cls.attributes.items():
        if isinstance(value, ast.Call) and any(_is_unique(each) for each in value.keywords):
            yield frozenset({name})
        if isinstance(value, ast.Call) and last(_called(value)) == "OneToOneField":
            yield frozenset({name})


def _is_unique(each: ast.keyword) -> bool:
    return each.arg in {"unique", "primary_key"} and isinstance(each.value, ast.Constant) and each.value.value is True


def _of_tables(cls: Class) -> Iterator[frozenset[str]]:
    expressions = [cls.attributes[name] for name in ("__table_args__",) if name in cls.attributes]
    for statement in cls.node.body:
        if isinstance(statement, ast.ClassDef) and statement.name == "Meta":
            for inner in statement.body:
                if isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Name):
                    if inner.targets[0].id == "unique_together":
                        yield from _together(inner.value)
                    elif inner.targets[0].id == "constraints":
                        expressions.append(inner.value)
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call):
                yield from _constraint(node)


def _together(node: ast.expr) -> Iterator[frozenset[str]]:
    if not isinstance(node, ast.Tuple | ast.List | ast.Set):
        return
    if all(isinstance(each, ast.Constant) for each in node.elts):
        yield _texts(node.elts)
    else:
        yield from (_texts(each.elts) for each in node.elts if isinstance(each, ast.Tuple | ast.List))


def _constraint(call: ast.Call) -> Iterator[frozenset[str]]:
    name = last(_called(call))
    if name == "UniqueConstraint":
        fields = next((each.value for each in call.keywords if each.arg == "fields"), None)
        listed = fields.elts if isinstance(fields, ast.Tuple | ast.List) else call.args
        yield _texts(listed)
    elif name == "Index" and any(_is_unique(each) for each in call.keywords):
        yield _texts(call.args[1:])


def _texts(nodes: list[ast.expr]) -> frozenset[str]:
    return frozenset(str(each.value) for each in nodes if isinstance(each, ast.Constant))


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
        case _:
            return ""


def is_whole(name: str, survey: Survey) -> bool:
    """Tell whether the project shows all of the model *name*: no base class comes from somewhere else."""
    cls = survey.project.cls(name)
    if cls is None:
        return False
    bases = survey.project.ancestors(cls)
    return all(survey.project.cls(base) is not None or base.endswith(("models.Model", "db.Model")) for base in bases)
