"""Scenes with django-celery-beat's own tables, in a process of their own: Django is configured once a process.

Prints what happened as one line of JSON. Takes the addresses of the broker and of a folder.
"""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import django
from celery.schedules import crontab
from django.conf import settings
from django.core.management import call_command

BROKER, FOLDER = sys.argv[1], Path(sys.argv[2])
WRAPS = "django_celery_beat.schedulers:DatabaseScheduler"


def main() -> None:
    """Play all scenes with one beat, and a second one that stands by."""
    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": FOLDER / "project.sqlite"}},
        INSTALLED_APPS=["django_celery_beat"],
        USE_TZ=True,
        SECRET_KEY="of a test",
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    )
    django.setup()
    call_command("migrate", verbosity=0)
    print(json.dumps(play()))  # noqa: T201 - the answer of this program


def play() -> dict[str, Any]:
    from django_celery_beat.models import (  # noqa: PLC0415 - after django.setup
        ClockedSchedule,
        CrontabSchedule,
        IntervalSchedule,
        PeriodicTask,
    )

    from tests.integration.beat.ticking import beating, project  # noqa: PLC0415 - after django.setup

    def task(name: str, **fields: Any) -> Any:
        return PeriodicTask.objects.create(name=name, task="work", **fields)

    every = IntervalSchedule.objects.create(every=1, period=IntervalSchedule.SECONDS)
    now = datetime.now(UTC)
    started = (now + timedelta(seconds=4)).replace(microsecond=0) + timedelta(milliseconds=300)
    clock = ClockedSchedule.objects.create(clocked_time=(now + timedelta(seconds=2)).replace(microsecond=0))
    hour = CrontabSchedule.objects.create(minute="0", hour=str((now.hour + 12) % 24), timezone="UTC")
    task("steady", interval=every)
    task("off", interval=every, enabled=False)
    task("single", interval=every, one_off=True)
    task("clocked", clocked=clock, one_off=True)
    task("expired", interval=every, expires=now - timedelta(hours=1))
    task("from start", interval=every, start_time=started)
    missed = task("missed at noon", crontab=hour)
    PeriodicTask.objects.filter(pk=missed.pk).update(last_run_at=now - timedelta(days=1))
    app = project(
        BROKER,
        f"sqlite:///{FOLDER / 'ledger.sqlite'}",
        WRAPS,
        beat_max_loop_interval=1,
        beat_schedule={"static": {"task": "work", "schedule": crontab(minute=0, hour=0, day_of_month=29)}},
    )
    told: dict[str, Any] = {}
    with beating(app) as beat:
        beat.until(lambda: len(beat.sent("steady")) >= 3)
        with beating(app) as standby:
            task("late", interval=every)
            beat.until(lambda: len(beat.sent("late")) >= 2)
            for _ in range(5):
                standby.scheduler.tick()
            told["standby has a schedule"] = standby.scheduler._reign is not None
            PeriodicTask.objects.get(name="late").delete()
            beat.during(1.5)
            gone = len(beat.sent("late"))
            beat.until(lambda: len(beat.sent("from start")) >= 3)
            told["sent after it was deleted"] = len(beat.sent("late")) - gone
            beat.scheduler.sync()
        told["total"] = PeriodicTask.objects.get(name="steady").total_run_count
        told["total sent"] = len(beat.sent("steady"))
        told["last run"] = PeriodicTask.objects.get(name="steady").last_run_at.timestamp()
    names = ["steady", "off", "single", "clocked", "expired", "from start", "missed at noon", "static"]
    told["sent"] = {name: beat.instants(name) for name in names}
    told["enabled"] = {name: PeriodicTask.objects.get(name=name).enabled for name in names}
    told["start"] = started.isoformat()
    told["clock"] = clock.clocked_time.isoformat()
    with beating(app) as again:
        again.until(lambda: len(again.sent("steady")) > told["total sent"] + 1)
        told["after a change of leader"] = again.instants("steady")
        told["single after a change of leader"] = again.instants("single")
    return told


if __name__ == "__main__":
    main()
