"""EO602: a leader that is seen less often than its lock lasts loses it while it leads."""

from collections.abc import Iterator
from typing import Any, Final

from effectonce.checker.configuration import Setting
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.numbers import seconds
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey

LONGEST: Final = 1800.0


def check(survey: Survey) -> Iterator[Found]:
    """Compare the lock of RedBeat with the longest sleep of beat."""
    for setting in survey.configuration.places("redbeat_lock_timeout"):
        message = _wrong(setting, survey)
        if message is not None:
            yield setting.module.found(setting.place, message)
    for setting in survey.configuration.places("redbeat_lock_key"):
        if survey.value(setting.node, setting.module) is None:
            yield setting.module.found(
                setting.place, "without a lock every beat sends: a second one, also for a moment, sends all tasks twice"
            )


def _wrong(setting: Setting, survey: Survey) -> str | None:
    lasts: Any = survey.value(setting.node, setting.module)
    if lasts is None or lasts == 0:
        return "the leader's lock has no end: when the leader dies, no other beat ever takes over"
    lock = seconds(lasts)
    sleep = seconds(survey.configuration.value("beat_max_loop_interval", setting.module))
    if lock is None:
        return None
    if sleep is not None and sleep >= lock:
        return (
            f"beat sleeps up to {sleep:,.0f} s and its lock lasts {lock:,.0f} s: the leader loses the lock while it "
            "leads, and a second beat sends beside it"
        )
    if lock > LONGEST:
        return f"when the leader dies, nobody sends for {lock:,.0f} s, until its lock has ended"
    return None


RULE = Rule(
    code="EO602",
    name="leader-lock-arithmetic",
    severity=Severity.ERROR,
    family=Family.SCHEDULES,
    summary="The lock of the leading beat does not fit its loop",
    check=check,
)
