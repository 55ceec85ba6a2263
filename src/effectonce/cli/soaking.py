"""``effectonce lab --soak``: random deaths for as long as one likes, and then a count."""

import json
import sys
from pathlib import Path

import click

from effectonce.cli.stopping import STOPPED, Stopped, stoppable


def soak(minutes: float, *, seed: int, json_file: Path | None) -> int:
    """Soak, tell what was counted, and return the exit code: 1 when something was doubled, lost or stuck."""
    from effectonce.lab import soak as soaking  # noqa: PLC0415 - --help need not load Celery
    from effectonce.lab.narrator import narrator  # noqa: PLC0415
    from effectonce.lab.processes import ProcessFailed  # noqa: PLC0415
    from effectonce.lab.servers.faults import ServiceFailed, ServiceMissing  # noqa: PLC0415
    from effectonce.lab.soak.report import show  # noqa: PLC0415

    voice = narrator()
    try:
        with stoppable():
            soaked = soaking.run(minutes=minutes, seed=seed, narrator=voice)
    except (ServiceMissing, ServiceFailed, ProcessFailed) as error:
        raise click.ClickException(str(error)) from error
    except Stopped as stop:
        click.echo("stopped; all that the soak had started is gone", err=True)
        sys.exit(STOPPED + stop.number)
    if json_file is not None:
        json_file.write_text(json.dumps(soaked.to_json(), indent=1) + "\n", encoding="utf-8")
    show(soaked, voice)
    return 0 if soaked.is_clean else 1
