"""Schedules: an entry is due at the beginning of each minute, and its task should take effect once a minute."""

from typing import TYPE_CHECKING, Final

from effectonce.lab.scenarios.scenario import scenario

if TYPE_CHECKING:
    from effectonce.lab.trials.trial import Trial

GROUP: Final = "Schedules"
AFTER: Final = 12.0
"""Seconds in which a second tick shows."""


@scenario("two-beats", group=GROUP, schedule=True, right="one effect a minute", seconds=90)
def two_beats(trial: "Trial") -> None:
    """Two beats run."""
    trial.begin()
    trial.await_minute()
    for _ in range(2):
        trial.scene.beat()
    trial.wait_tick()
    trial.finish_minute(AFTER)


@scenario("beat-restarted", group=GROUP, schedule=True, right="one effect a minute", seconds=90)
def beat_restarted(trial: "Trial") -> None:
    """A beat is killed a few seconds after a tick, and started again with the same schedule file."""
    trial.begin()
    trial.await_minute()
    beat = trial.scene.beat()
    trial.wait_tick()
    trial.pause(3)
    trial.kill_beat(beat)
    trial.restart_beat(beat)
    trial.finish_minute(AFTER)


@scenario("beat-fails-over", group=GROUP, schedule=True, right="one effect a minute", seconds=90)
def beat_fails_over(trial: "Trial") -> None:
    """Of two beats the one that has sent is killed a few seconds after the tick."""
    trial.begin()
    trial.await_minute()
    beats = [trial.scene.beat() for _ in range(2)]
    trial.wait_tick()
    trial.pause(3)
    trial.kill_beat(next((each for each in beats if "Sending due task" in each.log_text()), beats[0]))
    trial.finish_minute(AFTER + 8)


@scenario("beat-killed-at-sending", group=GROUP, schedule=True, right="one effect a minute", seconds=90)
def beat_killed_at_sending(trial: "Trial") -> None:
    """A beat dies when it has handed the message over and noted nothing; it is started again."""
    trial.begin()
    trial.await_minute()
    beat = trial.scene.beat(fault="published:tick")
    trial.wait_tick()
    trial.wait(lambda: not beat.is_running, "the death of the beat")
    trial.restart_beat(beat)
    trial.finish_minute(AFTER)
