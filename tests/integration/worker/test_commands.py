"""``celery -A proj once ...`` as a user types it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.worker.harness import Shop

APP = "tests.integration.worker.shop"


def command(*words: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "celery", *words], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("pair", ["redis+postgresql", "redis+redis"])
def test_status_list_and_show(shop: Shop, pair: str) -> None:
    task = "shared"
    shop.task(task)(7)
    status = command("-A", APP, "once", "status", env=shop.env)
    assert (status.returncode, "answers" in status.stdout) == (0, True)
    assert json.loads(command("-A", APP, "once", "status", "--json", env=shop.env).stdout)["entries"]["completed"] == 1
    assert command("-A", APP, "once", "status", "--ready", env=shop.env).returncode == 0
    listed = command("-A", APP, "once", "list", "--state", "completed", env=shop.env)
    assert "shared:7" in listed.stdout
    shown = command("-A", APP, "once", "show", "shared:7", "--json", env=shop.env)
    assert json.loads(shown.stdout)[0]["state"] == "completed"
    assert command("-A", APP, "once", "show", "nothing:1", env=shop.env).returncode == 3


def test_a_missing_schema_says_which_command_creates_it(shop: Shop, fleet: object, tmp_path: Path) -> None:
    env = {**shop.env, "SHOP_LEDGER": f"sqlite:///{tmp_path / 'new.sqlite'}", "SHOP_CREATE": "no"}
    probe = command("-A", APP, "once", "status", "--ready", env=env)
    assert probe.returncode == 1
    assert "celery -A proj once schema create" in probe.stderr
    created = command("-A", APP, "once", "schema", "create", env=env)
    assert (created.returncode, "is ready" in created.stdout) == (0, True)
    assert command("-A", APP, "once", "status", "--ready", env=env).returncode == 0


@pytest.mark.parametrize("words", [("once", "status"), ("-A", "celery", "once", "status")])
def test_without_an_app_that_has_effectonce_they_refuse(words: tuple[str, ...]) -> None:
    refused = command(*words, env={})
    assert refused.returncode == 2
    assert "EffectOnce" in refused.stderr


def test_a_bad_state_is_a_usage_error_and_help_teaches(shop: Shop) -> None:
    bad = command("-A", APP, "once", "list", "--state", "finished", env=shop.env)
    assert (bad.returncode, "completed" in bad.stderr) == (2, True)
    told = command("-A", APP, "once", "--help", env=shop.env)
    assert all(name in told.stdout for name in ("schema", "status", "list", "show"))
