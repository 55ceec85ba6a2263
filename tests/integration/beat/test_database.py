"""django-celery-beat's scheduler, the real one, under a term."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.services import Fleet


@pytest.fixture(scope="module")
def told(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What happened in the scenes."""
    broker = fleet.redis().fresh_url()
    command = [sys.executable, "-m", "tests.integration.beat.database_scenes"]
    done = subprocess.run(
        [*command, broker, str(tmp_path_factory.mktemp("django"))],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    yield json.loads(done.stdout.splitlines()[-1])
    fleet.redis().put_back(broker)


def moments(instants: list[str]) -> list[float]:
    return [datetime.fromisoformat(each).timestamp() for each in instants]


def test_an_entry_of_the_database_comes_on_the_grid_each_instant_once(told: dict[str, Any]) -> None:
    found = moments(told["sent"]["steady"])
    assert all(each % 1 == 0 for each in found)
    assert sorted(set(found)) == found


def test_counts_and_last_run_are_kept_right_in_the_database(told: dict[str, Any]) -> None:
    assert told["total"] == told["total sent"]
    assert abs(told["last run"] - moments(told["sent"]["steady"])[-1]) < 5


def test_a_disabled_and_an_expired_entry_are_not_sent(told: dict[str, Any]) -> None:
    assert told["sent"]["off"] == told["sent"]["expired"] == []
    assert told["enabled"]["expired"] is False


def test_a_one_off_is_sent_once_and_disabled(told: dict[str, Any]) -> None:
    assert len(told["sent"]["single"]) == 1
    assert told["enabled"]["single"] is False
    assert told["single after a change of leader"] == told["sent"]["single"]


def test_a_clocked_entry_is_sent_at_its_time_and_disabled(told: dict[str, Any]) -> None:
    assert told["sent"]["clocked"] == [told["clock"]]
    assert told["enabled"]["clocked"] is False


def test_intervals_count_from_the_start_of_their_entry(told: dict[str, Any]) -> None:
    start = datetime.fromisoformat(told["start"])
    expected = [(start + timedelta(seconds=number)).isoformat() for number in range(3)]
    assert told["sent"]["from start"][:3] == expected


def test_a_crontab_hours_away_that_was_missed_is_caught_up_now(told: dict[str, Any]) -> None:
    """By itself django-celery-beat looks at entries near their hour only."""
    assert len(told["sent"]["missed at noon"]) == 1


def test_entries_that_appear_and_vanish_while_it_runs(told: dict[str, Any]) -> None:
    assert told["sent after it was deleted"] == 0


def test_a_standby_opens_no_schedule(told: dict[str, Any]) -> None:
    """H16."""
    assert told["standby has a schedule"] is False


def test_the_next_leader_goes_on_where_the_last_one_was(told: dict[str, Any]) -> None:
    found = moments(told["after a change of leader"])
    assert sorted(set(found)) == found
