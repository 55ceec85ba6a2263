"""``effectonce lab``: each source of duplicates, made to happen."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from effectonce.cli.soaking import soak
from effectonce.cli.stopping import STOPPED, Stopped, stoppable

if TYPE_CHECKING:
    from effectonce.lab.results.report import Report
    from effectonce.lab.trials.runner import Pairing

SQLITE: Final = "sqlite"
_FILE: Final = click.Path(dir_okay=False, writable=True, path_type=Path)


@click.command()
@click.option("--list", "only_list", is_flag=True, help="Say what is tried, and end.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this scenario; may be given again.")
@click.option("--contenders", metavar="NAMES", help="Only these columns, separated by commas.")
@click.option("--jobs", type=click.IntRange(1, 64), default=4, show_default=True, help="How many trials at once.")
@click.option("--broker", metavar="URL", help="redis://... or amqp://... instead of servers of its own.")
@click.option(
    "--ledger", metavar="URL", help="postgresql+psycopg://... instead of a server of its own; 'sqlite' for a file each."
)
@click.option(
    "--soak",
    "minutes",
    type=click.FloatRange(min=0),
    metavar="MINUTES",
    help="Random deaths on random systems instead.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Another plan of what strikes in a soak, and when."
)
@click.option("--json", "json_file", type=_FILE, help="Write all that was measured there.")
@click.option("--html", "html_file", type=_FILE, help="Write a page with timelines there.")
def lab(
    *,
    only_list: bool,
    only: tuple[str, ...],
    contenders: str | None,
    jobs: int,
    broker: str | None,
    ledger: str | None,
    minutes: float | None,
    seed: int,
    json_file: Path | None,
    html_file: Path | None,
) -> None:
    r"""Make each source of duplicates and losses happen, with and without the guard.

    Real workers, real brokers and databases; processes and servers are killed, frozen and cut off. An append-only table
    without constraints is the judge. Columns are plain Celery, Celery's own deduplication, effectonce, and the
    libraries for the same purpose that are installed in this environment.

    \b
    effectonce lab --only child-killed --only worker-killed
    effectonce lab --contenders celery,effectonce --html lab.html
    effectonce lab --soak 10 --seed 1 --json soak.json

    What is used is found on this machine (redis-server or valkey-server, rabbitmq-server, PostgreSQL) and started on
    free ports; without PostgreSQL the ledger is a SQLite file. Scenarios whose server is missing are named as not
    tried. Nothing is left behind, also after Ctrl-C.

    Exit code: 0 if effectonce's column is right in every row, or if a soak found nothing doubled, lost or stuck; 1 if
    not, 2 for a bad option.
    """
    if minutes is not None:
        sys.exit(soak(minutes, seed=seed, json_file=json_file))
    pairings = _pairings(only, contenders)
    if only_list:
        _list(pairings)
        return
    report = _run(pairings, jobs=jobs, broker=broker, ledger=ledger)
    _write(report, json_file, html_file)
    sys.exit(_told(report))


def _pairings(only: Sequence[str], contenders: str | None) -> "list[Pairing]":
    from effectonce.lab.contenders import CONTENDERS  # noqa: PLC0415 - --help need not load Celery
    from effectonce.lab.scenarios import SCENARIOS  # noqa: PLC0415
    from effectonce.lab.trials.runner import Pairing  # noqa: PLC0415

    names = _known(only, SCENARIOS, "--only")
    columns = _known([word.strip() for word in (contenders or "").split(",") if word], CONTENDERS, "--contenders")
    absent = [name for name in columns if CONTENDERS[name].version() is None]
    if contenders and absent:
        message = f"not installed here: {', '.join(absent)}"
        raise click.BadParameter(message, param_hint="--contenders")
    return [
        Pairing(scenario=SCENARIOS[name], contender=column)
        for name in names
        for column in columns
        if column not in absent and CONTENDERS[column].is_asked(schedule=SCENARIOS[name].schedule)
    ]


def _known(given: Sequence[str], there: Any, option: str) -> list[str]:
    unknown = [name for name in given if name not in there]
    if unknown:
        message = f"there is no {', '.join(unknown)}; there are {', '.join(there)}"
        raise click.BadParameter(message, param_hint=option)
    return [name for name in there if not given or name in given]


def _list(pairings: "Sequence[Pairing]") -> None:
    for each in dict.fromkeys(each.scenario for each in pairings):
        needs = f" (needs {', '.join(sorted(each.needs))})" if each.needs else ""
        click.echo(f"{each.name}\n    {each.question} Right: {each.right}.{needs}")


def _run(pairings: "Sequence[Pairing]", *, jobs: int, broker: str | None, ledger: str | None) -> "Report":
    from effectonce.lab.addresses import DemoRefused, check_broker  # noqa: PLC0415
    from effectonce.lab.results.report import Report, cell  # noqa: PLC0415
    from effectonce.lab.servers.faults import ServiceFailed  # noqa: PLC0415
    from effectonce.lab.trials.runner import run_trials  # noqa: PLC0415

    def tell(row: dict[str, Any], done: int, of: int) -> None:
        seconds = f" in {row['seconds']:.0f} s" if "seconds" in row else ""
        click.echo(f"[{done:3} of {of}] {row['scenario']}, {row['contender']}: {cell(row)}{seconds}", err=True)

    try:
        broker = check_broker(broker) if broker else None
        ledger = _ledger(ledger)
        with stoppable():
            rows = run_trials(pairings, jobs=jobs, broker=broker, ledger=ledger, tell=tell)
    except DemoRefused as error:
        raise click.BadParameter(error.reason, param_hint=error.option) from error
    except ServiceFailed as error:
        raise click.ClickException(str(error)) from error
    except Stopped as stop:
        click.echo("stopped; all that the lab had started is gone", err=True)
        sys.exit(STOPPED + stop.number)
    return Report.of(rows)


def _ledger(given: str | None) -> str | None:
    """What was given, checked: one database is shared by trials that have a schema each, a file is not."""
    from effectonce.lab.addresses import DemoRefused, check_ledger  # noqa: PLC0415

    if given is None or given == SQLITE:
        return given
    if given.startswith(SQLITE):
        raise DemoRefused(option="--ledger", reason=f"write '{SQLITE}': each trial has a file of its own")
    return check_ledger(given)


def _write(report: "Report", json_file: Path | None, html_file: Path | None) -> None:
    from effectonce.lab.results.page import page_of  # noqa: PLC0415

    if json_file is not None:
        json_file.write_text(report.to_json(), encoding="utf-8")
    if html_file is not None:
        html_file.write_text(page_of(report), encoding="utf-8")


def _told(report: "Report") -> int:
    from effectonce.lab.results.text import table, verdict  # noqa: PLC0415

    for line in [*table(report), "", *verdict(report)]:
        click.echo(line)
    return 1 if report.wrong else 0
