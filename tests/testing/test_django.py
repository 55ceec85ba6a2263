"""Tasks of a Django project, proven under pytest in a process of their own: settings are made once a process."""

import subprocess
import sys
import textwrap
from pathlib import Path

PROJECT = """
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite"}},
    INSTALLED_APPS=["django.contrib.contenttypes"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()

import pytest
from celery import Celery
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import transaction

from effectonce.testing import NotOnce

app = Celery("shop", broker="memory://", backend="cache+memory://")
call_command("migrate", verbosity=0)


@app.task
def adds(name):
    ContentType.objects.create(app_label="shop", model=name + str(ContentType.objects.count()))


@app.task
def settles(name):
    ContentType.objects.get_or_create(app_label="shop", model=name)


def test_adds(effects):
    before = ContentType.objects.count()
    with pytest.raises(NotOnce, match="table django_content_type: .* rows instead of"):
        effects.prove_once(adds, ("order",), database="default")
    assert ContentType.objects.count() == before


def test_settles(effects):
    proof = effects.prove_once(settles, ("order",), database="default")
    assert any("INSERT" in point for point in proof.points)


def test_inside_a_transaction(effects):
    with transaction.atomic(), pytest.raises(RuntimeError, match="TransactionTestCase"):
        effects.prove_once(settles, ("order",), database="default")
"""


def test_a_database_may_be_given_as_a_django_alias(tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(textwrap.dedent(PROJECT))
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:django", "test_shop.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "3 passed" in ended.stdout, ended.stdout[-3000:]
