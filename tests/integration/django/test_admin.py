"""The admin's pages, in a project of their own: who may look, who may act, and what is escaped."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import json, sys
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1]}},
    INSTALLED_APPS=["django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes",
                    "django.contrib.sessions", "django.contrib.messages", "effectonce.contrib.django"],
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware",
                "django.middleware.csrf.CsrfViewMiddleware",
                "django.contrib.auth.middleware.AuthenticationMiddleware",
                "django.contrib.messages.middleware.MessageMiddleware"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
                "OPTIONS": {"context_processors": ["django.template.context_processors.request",
                            "django.contrib.auth.context_processors.auth",
                            "django.contrib.messages.context_processors.messages"]}}],
    ROOT_URLCONF=__name__, SECRET_KEY="of a test", USE_TZ=True, ALLOWED_HOSTS=["*"],
    STATIC_URL="/static/", PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
)
django.setup()
from celery import Celery
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.test import Client
from django.urls import path
from effectonce import EffectOnce, Transactional

urlpatterns = [path("admin/", admin.site.urls)]
call_command("migrate", verbosity=0)
app = Celery("admin", broker="memory://", backend="cache+memory://")
once = EffectOnce(app, ledger="django")

@app.task(name="pay", once=Transactional("pay:{order}"))
def pay(order):
    return "a secret result"

pay("A-1"), pay("<b>bold</b>")
digest = once.entries.one("pay:A-1").entry.digest.hex()
told = {}
for name in ("looker", "actor", "nobody"):
    user = User.objects.create_user(name, password="x", is_staff=True)
    codes = {"looker": ["view_entries"], "actor": ["change_entries"]}.get(name, [])
    user.user_permissions.set(Permission.objects.filter(codename__in=codes, content_type__app_label="effectonce"))
    client = Client(enforce_csrf_checks=False)
    client.login(username=name, password="x")
    lists = client.get("/admin/effectonce/entries/")
    page = client.get(f"/admin/effectonce/entries/effect/{digest}/")
    told[name] = {
        "list": lists.status_code, "page": page.status_code,
        "text": lists.content.decode(), "effect": page.content.decode(),
        "search": client.get("/admin/effectonce/entries/?q=A-1&state=2").status_code,
        "ask": client.get(f"/admin/effectonce/entries/effect/{digest}/reopen/").status_code,
        "strict": Client(enforce_csrf_checks=True),
    }
    strict = told[name].pop("strict")
    strict.login(username=name, password="x")
    told[name]["forged"] = strict.post(f"/admin/effectonce/entries/effect/{digest}/reopen/").status_code
    told[name]["act"] = client.post(f"/admin/effectonce/entries/effect/{digest}/reopen/").status_code
    told[name]["state"] = once.entries.one(digest).entry.state.name
    told[name]["after"] = client.get(f"/admin/effectonce/entries/effect/{digest}/").content.decode()
    again = client.post(f"/admin/effectonce/entries/effect/{digest}/reopen/", follow=True)
    told[name]["again"] = again.content.decode()
    told[name]["add"] = client.get("/admin/effectonce/entries/add/").status_code
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What each person saw and could do."""
    folder = tmp_path_factory.mktemp("admin")
    script = folder / "admin_project.py"
    script.write_text(SCRIPT)
    words = [sys.executable, "-W", "ignore", str(script), str(folder / "db.sqlite")]
    done = subprocess.run(words, check=False, capture_output=True, text=True, env={**os.environ}, cwd=Path.cwd())
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_one_who_may_look_sees_effects_and_may_not_act(told: Any) -> None:
    seen = told["looker"]
    assert (seen["list"], seen["page"], seen["search"]) == (200, 200, 200)
    assert "pay:A-1" in seen["text"]
    assert "reopen" not in seen["effect"]
    assert (seen["ask"], seen["act"], seen["state"]) == (403, 403, "COMPLETED")


def test_one_who_may_act_acts_under_their_name(told: Any) -> None:
    seen = told["actor"]
    assert (seen["ask"], seen["act"], seen["state"]) == (200, 302, "RELEASED")
    assert "by=actor" in seen["after"]
    assert "only what has finished is reopened" in seen["again"]


def test_one_without_a_permission_sees_nothing(told: Any) -> None:
    seen = told["nobody"]
    assert {seen["list"], seen["page"], seen["ask"], seen["act"]} == {403}


def test_no_row_is_added_and_no_form_of_another_site_is_taken(told: Any) -> None:
    assert {each["add"] for each in told.values()} == {403}
    assert told["actor"]["forged"] == 403


def test_keys_are_escaped_and_results_hidden(told: Any) -> None:
    assert "<b>bold</b>" not in told["actor"]["text"]
    assert "&lt;b&gt;bold&lt;/b&gt;" in told["actor"]["text"]
    assert "a secret result" not in told["actor"]["effect"]
