"""The reference names what there is: each error, setting, option, event and command, and no other."""

import dataclasses
import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import pytest

from effectonce import errors, observers
from effectonce.cli.effectonce import main
from effectonce.cli.once import once
from effectonce.cli.plainly import NOT_FOUND, REFUSED
from effectonce.domain.claims import State
from effectonce.domain.policies import Exclusive, Leased, Policy, Transactional, Unique
from effectonce.errors import EffectOnceError
from effectonce.events import Name
from effectonce.settings import PREFIX, Settings
from tests.docs.pages import PAGES, named, rows

ROOT = Path(__file__).parents[2]
ERRORS = {
    each.code: each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, EffectOnceError) and not each.__name__.startswith("_")
}
NO_DEFAULT = "none: it must be given"


def test_every_error_has_its_page_and_every_page_its_error() -> None:
    pages = {page.stem for page in (PAGES / "errors").glob("*.md")} - {"index"}
    assert pages == set(ERRORS)


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_the_page_of_an_error_names_it_and_says_what_to_do(code: str) -> None:
    text = (PAGES / "errors" / f"{code}.md").read_text()
    assert text.startswith(f"# {code}\n\n`effectonce.{ERRORS[code].__name__}`\n")
    for part in ("What is known", "What is true of the work", "What to do"):
        assert f"\n## {part}\n" in text


@pytest.mark.parametrize("code", sorted(set(ERRORS) - {"effect-once"}))
def test_the_page_of_an_error_names_its_facts(code: str) -> None:
    """Every fact that the text of an error shows is explained."""
    cls = ERRORS[code]
    facts = set(re.findall(r"(?<!\{)\{(\w+)[:}]", cls.message + cls.hint))
    text = (PAGES / "errors" / f"{code}.md").read_text()
    assert {fact for fact in facts if f"`{fact}`" not in text} == set()


def test_the_index_of_errors_lists_them_all() -> None:
    listed = {re.findall(r"\[(.*?)\]", row[0])[0]: row[1].strip("`") for row in rows("errors/index.md")}
    assert listed == {code: cls.__name__ for code, cls in ERRORS.items()}


def test_the_address_in_an_error_ends_with_the_name_of_its_page() -> None:
    assert {cls().page.rpartition("/")[2] for cls in ERRORS.values()} == set(ERRORS)


def test_every_setting_stands_in_the_reference_with_its_default() -> None:
    settings = Settings.__dataclass_fields__
    defaults = {name: row[1] for name, row in named("settings.md").items()}
    assert defaults == {
        PREFIX + name: NO_DEFAULT if name == "ledger" else _shown(field.default) for name, field in settings.items()
    }


@pytest.mark.parametrize(("heading", "policy"), [("Transactional", Transactional), ("Leased", Leased)])
def test_every_option_of_a_policy_stands_in_the_reference_with_its_default(heading: str, policy: type[Policy]) -> None:
    made = policy("work:{x}")
    own = {name: _shown(value) for name, value in made._own_options().items()}
    assert _defaults(f"## Options of `{heading}`\n") == own
    assert _defaults("## Options of all\n") == _shared(made)


def test_the_reference_says_where_the_defaults_of_exclusive_differ() -> None:
    made, usual = Exclusive("work"), _shared(Leased("work:{x}"))
    differing = {name: value for name, value in _shared(made).items() if usual[name] != value}
    own = {name: _shown(value) for name, value in made._own_options().items()}
    assert _defaults("## Options of `Exclusive`\n") == {**own, **differing}


def test_the_options_of_unique_stand_in_the_reference() -> None:
    made = Unique("work")
    assert _defaults("## Options of `Unique`\n") == {name: _shown(value) for name, value in made._own_options().items()}


def test_every_event_stands_in_the_reference_with_its_level() -> None:
    listed = {name: row[1] for name, row in named("events.md").items()}
    emitted = _emitted()
    levels = {name.value: observers._LEVELS.get(name, logging.WARNING) for name in emitted}
    assert listed == {name: logging.getLevelName(level) for name, level in levels.items()}


def test_events_that_nobody_emits_are_listed_as_such() -> None:
    later = (PAGES / "events.md").read_text().partition("## Not emitted yet")[2]
    assert set(re.findall(r"`([a-z_]+\.[a-z_]+)`", later)) == {name.value for name in set(Name) - _emitted()}


def test_every_command_stands_in_the_reference() -> None:
    listed = {name.partition(" --")[0].removesuffix(" KEY") for name in named("commands.md", after="## celery -A")}
    assert {name for name in listed if not name.isdigit()} == {" ".join(path) for path in _commands(once)}
    programs = named("commands.md", after="## effectonce\n")
    assert {name for name in programs if name in main.commands} == set(main.commands)


@pytest.mark.parametrize("group", [once, main])
def test_every_option_of_a_command_stands_in_the_reference(group: click.Group) -> None:
    text = (PAGES / "commands.md").read_text()
    for command in _leaves(group):
        options = [option for each in command.params for option in each.opts if option.startswith("--")]
        assert [option for option in options if f"`{option}" not in text and f" {option}" not in text] == []


def test_every_exit_code_of_once_stands_in_the_reference() -> None:
    codes = [row[0] for row in rows("commands.md", after="## celery -A proj once") if row[0].isdigit()]
    assert codes == ["0", "1", "2", str(NOT_FOUND), str(REFUSED)]


def test_every_state_is_named_and_explained() -> None:
    life = (ROOT / "docs" / "explanation" / "life-of-an-effect.md").read_text()
    commands = (PAGES / "commands.md").read_text()
    names = [f"`{state.name.lower()}`" for state in State]
    assert [name for name in names if name not in life or name not in commands] == []


def _defaults(heading: str) -> Mapping[str, str]:
    return {name: row[1] for name, row in named("policies.md", after=heading).items()}


def _shared(policy: Policy) -> Mapping[str, str]:
    names = [each.name for each in dataclasses.fields(Policy) if each.name not in {"key", "unknown"}]
    return {name: _shown(getattr(policy, name)) for name in names}


def _shown(value: object) -> str:
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return f"`{text}`"


def _emitted() -> set[Name]:
    sources = [
        path.read_text()
        for path in (ROOT / "src/effectonce").rglob("*.py")
        if path.name not in {"events.py", "observers.py"}
    ]
    return {Name[name] for text in sources for name in re.findall(r"\bName\.([A-Z_]+)\b", text)}


def _commands(group: click.Group) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from ((name, *rest) for rest in _commands(command))
        else:
            yield (name,)


def _leaves(group: click.Group) -> Iterator[click.Command]:
    for command in group.commands.values():
        if isinstance(command, click.Group):
            yield from _leaves(command)
        else:
            yield command
