"""The app of a trial: what its workers load, and what its caller sends with."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from celery import Celery, signals
from celery.schedules import crontab

from effectonce.lab.addresses import is_redis
from effectonce.lab.contenders import CONTENDERS
from effectonce.lab.contenders.contender import Contender
from effectonce.lab.trials.bodies import World
from effectonce.lab.trials.diary import Diary
from effectonce.lab.trials.effects import Effects
from effectonce.lab.trials.faults import arm
from effectonce.lab.trials.place import Place
from effectonce.lab.trials.tasks import define_tasks

APP: Final = "effectonce.lab.trials.worker_app"


@dataclass(frozen=True, slots=True, kw_only=True)
class Laboratory:
    """One process's view of a trial."""

    place: Place
    app: Any
    contender: Contender
    tasks: dict[str, Any]
    effects: Effects
    diary: Diary


def open_laboratory(place: Place) -> Laboratory:
    """Make the app for *place*; connects to nothing yet."""
    _skew(place.skew)
    app = Celery("lab", broker=place.broker, backend=place.results, set_as_current=True)
    app.conf.update(_configuration(place))
    contender = CONTENDERS[place.contender]
    contender.prepare(app, place)
    app.conf.update(place.settings)
    diary, effects = Diary(Path(place.diary)), Effects(place.ledger, schema=place.schema)
    tasks = define_tasks(app, place, contender, World(contender, effects, diary))
    arm(place)

    def note_delivery(*, task_id: str, args: Any, **_: Any) -> None:
        diary.note("delivered", intent=str(args[0]) if args else "", message=task_id)

    signals.task_prerun.connect(note_delivery, weak=False)
    return Laboratory(place=place, app=app, contender=contender, tasks=tasks, effects=effects, diary=diary)


def _configuration(place: Place) -> dict[str, Any]:
    transport: dict[str, Any] = {}
    if is_redis(place.broker):
        transport = {
            "visibility_timeout": place.visibility,
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
            # A worker that is killed while it looks for messages to give back leaves this lock behind.
            "unacked_mutex_expire": 3,
        }
    return {
        "broker_transport_options": transport,
        "broker_connection_retry_on_startup": True,
        "task_default_queue": place.name,
        "worker_prefetch_multiplier": 1,
        "worker_enable_remote_control": False,
        "result_expires": 3600,
        "beat_schedule": {"tick": {"task": "tick", "schedule": crontab()}},
        "beat_max_loop_interval": 1,
    }


def _skew(seconds: float) -> None:
    """Let this process's clock be ahead, as a badly set machine's is."""
    if seconds:
        true = time.time
        time.time = lambda: true() + seconds
