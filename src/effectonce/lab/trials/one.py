"""One trial, from its beginning to what came out, as plain values."""

import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

from effectonce.lab.scenarios import SCENARIOS
from effectonce.lab.trials.diary import Diary, now
from effectonce.lab.trials.parts import Parts
from effectonce.lab.trials.scene import scene
from effectonce.lab.trials.trial import NeverHappened, Trial
from effectonce.lab.trials.verdict import Outcome


def carry_out(*, scenario: str, contender: str, folder: str, parts: dict[str, Any]) -> dict[str, Any]:
    """Play *scenario* for *contender*; a trial that cannot be carried out says so, and is no verdict on anybody."""
    began = now()
    try:
        with scene(SCENARIOS[scenario], contender, Parts(**parts), Path(folder)) as stage:
            trial = Trial(stage)
            outcome = _played(trial, scenario)
    except Exception:  # noqa: BLE001 - the top of the trial
        outcome = _broken(traceback.format_exc()[-3000:])
    moments = [asdict(each) for each in Diary(Path(folder) / "diary").read()]
    return {
        "scenario": scenario,
        "contender": contender,
        "words": outcome.words,
        "outcome": asdict(outcome),
        "moments": moments,
        "began": began,
        "seconds": now() - began,
    }


def _played(trial: Trial, scenario: str) -> Outcome:
    try:
        SCENARIOS[scenario].play(trial)
        return trial.outcome()
    except NeverHappened as fault:
        return _broken(f"it never happened: {fault}")


def _broken(why: str) -> Outcome:
    return Outcome(expected={}, effects={}, bodies={}, calls=(), broken=why)
