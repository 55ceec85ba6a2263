"""EO701: each beat sends each periodic task; two beats send it twice."""

from collections.abc import Iterator

from effectonce.checker.deployment.places import Deployment, Process
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.leaders import has_leader
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey


def check(survey: Survey) -> Iterator[Found]:
    """Look for beats that run in several places."""
    scaled = {name for deployment in survey.deployments for name in deployment.scaled}
    for deployment in survey.deployments:
        beats = [each for each in deployment.processes if each.verb == "beat" and not has_leader(each, survey)]
        for beat in beats:
            found = _many(beat, deployment, scaled)
            if found is not None:
                yield found
        yield from _second(beats, deployment)


def _many(beat: Process, deployment: Deployment, scaled: set[str]) -> Found | None:
    text = "every one of them sends every periodic task, so each runs that often"
    count = beat.replicas.value if beat.replicas is not None else None
    if beat.replicas is not None and isinstance(count, float) and count > 1:
        return deployment.found(beat.replicas.row, f"beat {beat.name!r} runs in {count:.0f} replicas: {text}")
    if beat.is_scaled or (beat.name and beat.name in scaled):
        return deployment.found(beat.row, f"beat {beat.name!r} is scaled to several: {text}")
    return None


def _second(beats: list[Process], deployment: Deployment) -> Iterator[Found]:
    """Two services that run the beat of one app."""
    seen: dict[str, Process] = {}
    for beat in beats:
        app = beat.option("-A", "--app") or ""
        schedule = beat.option("-s", "--schedule") or ""
        first = seen.setdefault(app, beat)
        if first is not beat and first.name != beat.name and schedule == (first.option("-s", "--schedule") or ""):
            yield deployment.found(
                beat.row, f"{beat.name!r} is a second beat beside {first.name!r}: each sends every periodic task"
            )


RULE = Rule(
    code="EO701",
    name="several-beats",
    severity=Severity.ERROR,
    family=Family.DEPLOYMENT,
    summary="More than one beat sends the periodic tasks",
    check=check,
)
