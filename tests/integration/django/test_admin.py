"""The admin's pages, in a project of their own: who may look, who may act, and what is escaped."""

import json
import os
import re
import subprocess
import sys
from gettext import GNUTranslations
from pathlib import Path
from typing import Any

import pytest

from effectonce.contrib import django as admin
from effectonce.domain.causes import Cause
from effectonce.domain.claims import State
from effectonce.web.words import RUSSIAN

SCRIPT = """
import json, sys
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1]}},
    INSTALLED_APPS=["django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes",
                    "django.contrib.sessions", "django.contrib.messages", "effectonce.contrib.django"],
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware",
                "django.middleware.locale.LocaleMiddleware",
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
    russian = {"HTTP_ACCEPT_LANGUAGE": "ru"}
    told[name]["russian"] = [
        client.get(f"/admin/effectonce/entries/{where}", **russian).content.decode()
        for where in ("", f"effect/{digest}/", f"effect/{digest}/reopen/")
    ]
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


def test_the_pages_speak_russian_to_who_asks_for_it(told: Any) -> None:
    listed, effect, asked = told["actor"]["russian"]
    assert all(word in listed for word in ("Эффект", "Состояние", "выполнен"))
    assert all(word in effect for word in ("Последний исполнитель", "Хронология", "открыть заново", "сейчас: выполнен"))
    assert all(word in asked for word in ("Точно?", "Отмена"))
    assert "Last holder" not in effect


ADMIN = Path(admin.__file__).parent
CATALOGUE = ADMIN / "locale" / "ru" / "LC_MESSAGES" / "django.po"


def test_the_catalogue_knows_every_word_of_the_pages_as_the_dashboard_says_it() -> None:
    catalogue = _catalogue()
    pages = [page.read_text() for page in (ADMIN / "templates" / "admin" / "effectonce").glob("*.html")]
    said = {word for page in pages for word in re.findall(r'{% translate "([^"]+)" %}', page)}
    said |= {
        word
        for pair in re.findall(r"_\(\"([^\"]+)\"|gettext\(['\"]([^'\"]+)['\"]\)", _source())
        for word in pair
        if word
    }
    said |= {word for state in State for word in (state.name.lower(), f"now {state.name.lower()}")}
    said |= {
        "settle",
        "rerun",
        "reopen",
        "redact",
        "step began",
        "step ended",
        "step skipped",
        *(each.value for each in Cause),
    }
    assert len(said) > 40
    assert said - {""} <= set(catalogue)
    assert {word: told for word, told in catalogue.items() if RUSSIAN.get(word, told) != told} == {}


def test_the_compiled_catalogue_is_made_of_the_written_one() -> None:
    """``pybabel compile`` or ``msgfmt`` makes it."""
    with CATALOGUE.with_suffix(".mo").open("rb") as file:
        compiled = GNUTranslations(file)
    assert {word: compiled.gettext(word) for word in _catalogue()} == _catalogue()


def _catalogue() -> dict[str, str]:
    written = CATALOGUE.read_text(encoding="utf-8")
    return {word: told for word, told in re.findall(r'^msgid "(.*)"\nmsgstr "(.*)"$', written, re.MULTILINE) if word}


def _source() -> str:
    return (ADMIN / "admin.py").read_text(encoding="utf-8")
