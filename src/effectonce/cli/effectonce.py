"""The program `effectonce`: what needs no app of yours, and with ``-A proj`` the commands on an app too."""

import sys
from typing import Final

import click

from effectonce import __version__
from effectonce.cli.bench import bench
from effectonce.cli.check import check
from effectonce.cli.lab import lab
from effectonce.cli.on_app import Program, open_app
from effectonce.cli.prove import prove
from effectonce.cli.stopping import STOPPED, Stopped, stoppable

FEWEST_ORDERS: Final = 4


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="effectonce")
@click.option("-A", "--app", expose_value=False, callback=open_app, help="The Celery app, as celery -A names it.")
def main() -> None:
    """See that a Celery task takes effect once, though its message arrives more than once.

    Begin with `effectonce demo`; it needs nothing but itself.

    `effectonce -A proj ...` is the same as `celery -A proj once ...`.
    """


main.add_command(check)
main.add_command(lab)
main.add_command(bench)
main.add_command(prove)


@main.command()
@click.option(
    "--orders", type=click.IntRange(FEWEST_ORDERS, 10_000), default=100, show_default=True, help="How many to charge."
)
@click.option("--broker", metavar="URL", help="redis://... or amqp://... instead of an embedded server.")
@click.option("--ledger", metavar="URL", help="postgresql+psycopg://... or sqlite:///NEWFILE instead of an own file.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another plan: which orders meet which trouble.")
def demo(*, orders: int, broker: str | None, ledger: str | None, seed: int) -> None:
    """Charge orders twice, and once, in about a minute.

    Real workers run a plain task and a guarded one that do the same work: they charge orders. Every message is sent
    twice. Some are delivered again while their body still runs. Pool processes and whole workers are killed in the
    middle of bodies. At the end charges are counted, and a table compares the two tasks. Nothing is left behind, also
    after Ctrl-C.

    Servers that you name with --broker and --ledger are used under names of this run only, which are removed at the
    end; workers are our own.

    Exit code: 0 if the guarded task charged each order once, 1 if not or if the demo could not run to its end, 2 for a
    bad option.
    """
    from effectonce.lab import report  # noqa: PLC0415 - --help need not load Celery
    from effectonce.lab.addresses import DemoBroken, DemoRefused  # noqa: PLC0415
    from effectonce.lab.demo import run_demo  # noqa: PLC0415
    from effectonce.lab.narrator import narrator  # noqa: PLC0415
    from effectonce.lab.processes import ProcessFailed  # noqa: PLC0415
    from effectonce.lab.valkey import ValkeyMissing  # noqa: PLC0415

    voice = narrator()
    try:
        with stoppable():
            tally = run_demo(orders=orders, seed=seed, broker=broker, ledger=ledger, narrator=voice)
    except DemoRefused as error:
        raise click.BadParameter(error.reason, param_hint=error.option) from error
    except (DemoBroken, ProcessFailed, ValkeyMissing) as error:
        raise click.ClickException(str(error)) from error
    except Stopped as stop:
        click.echo("stopped; all that the demo had started is gone", err=True)
        sys.exit(STOPPED + stop.number)
    report.show(tally, voice)
    sys.exit(0 if tally.of("guarded").is_clean else 1)
