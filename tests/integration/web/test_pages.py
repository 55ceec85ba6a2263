"""The dashboard without a browser: who may come in, what is forbidden, what is escaped, what is hidden."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from starlette.testclient import TestClient

from effectonce.app.doctor import CHECKS
from effectonce.cli.once import once as commands
from effectonce.domain.claims import State
from effectonce.stores.sql.rows import claim_values
from effectonce.testing.conformance.scene import new_claim
from effectonce.web import dashboard
from effectonce.web.gate import HEADERS
from effectonce.web.words import RUSSIAN
from tests.integration.seeing.conftest import House
from tests.integration.web.conftest import HOSTILE, hold_as_unknown

PAGES = ["/", "/entries", "/outbox", "/ticks", "/doctor"]


@pytest.fixture
def client(house: House) -> TestClient:
    return TestClient(dashboard(house.once))


def digest_of(house: House, key: str) -> str:
    return house.once.entries.one(key).entry.digest.hex()


def token_in(text: str) -> str:
    found = re.search(r'name="csrf" value="(\w+)"', text)
    assert found
    return found[1]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_answers_in_both_languages_with_the_headers(client: TestClient, page: str) -> None:
    for language in ("en", "ru"):
        answer = client.get(page, params={"lang": language})
        assert answer.status_code == 200
        assert f'<html lang="{language}">' in answer.text
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS


QUESTIONS = {
    "/": 8,
    "/entries": 2,
    "/entries?q=pay": 2,
    "/entries?state=unknown": 1,
    "/outbox": 2,
    "/ticks": 2,
    "ENTRY": 4,
}


@pytest.mark.parametrize("page", QUESTIONS)
def test_a_page_asks_the_ledger_a_few_questions_however_much_there_is(
    client: TestClient, house: House, page: str
) -> None:
    """Each of them is held to an index, or to a piece of the table, by ``tests/plan``."""
    address = f"/entries/{digest_of(house, 'pay:A-1042')}" if page == "ENTRY" else page
    engine = house.once.ledger.source.engine  # type: ignore[attr-defined]
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        asked.append(statement)

    client.get(address)
    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        client.get(address).raise_for_status()
        some = len(asked)
        for number in range(20):
            house.deliver("pay", f"more-{number}", id=f"id-more-{page}-{number}")
        asked.clear()
        client.get(address).raise_for_status()
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)
    assert len(asked) == some <= QUESTIONS[page], asked


def test_the_first_line_says_what_is_wrong(client: TestClient) -> None:
    text = client.get("/").text
    assert "Needs a look: 3 held." in re.sub(r"\s+", " ", text)
    assert "Требует внимания: 3 отложено." in re.sub(r"\s+", " ", client.get("/?lang=ru").text)


def test_every_word_of_the_pages_is_known_in_russian(client: TestClient, house: House) -> None:
    """What stands in the templates as words to be said has a translation."""
    from effectonce.web import shown  # noqa: PLC0415 - beside its only use

    loader = shown._TEMPLATES.loader
    assert loader is not None
    said = set()
    for name in loader.list_templates():
        said |= set(re.findall(r"""_\("([^"]+)"\)|_\('([^']+)'\)""", loader.get_source(shown._TEMPLATES, name)[0]))
    said_of_checks = {words for check in CHECKS for words in (check.title, check.setting)}
    assert {word for pair in said for word in pair if word} | said_of_checks <= set(RUSSIAN)


def test_a_hostile_key_is_only_text(client: TestClient, house: House) -> None:
    (entry,) = (each for each in house.once.ledger.entries(state=None, limit=99) if "onerror" in each.key)
    for page in ("/entries", "/", f"/entries/{entry.digest.hex()}"):
        text = client.get(page).text
        assert "<img src=x" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in client.get(f"/entries/{entry.digest.hex()}").text
    asked = client.get("/entries", params={"q": HOSTILE}).text
    assert "<img" not in asked
    assert "onerror" in asked


def test_results_are_hidden_until_they_are_asked_for(client: TestClient, house: House) -> None:
    page = f"/entries/{digest_of(house, 'pay:A-1041')}"
    assert "paid A-1041" not in client.get(page).text
    assert "paid A-1041" in client.get(f"{page}?result=1").text


def test_an_argument_that_differed_is_named(client: TestClient, house: House) -> None:
    assert '<code class="differs">amount</code>' in client.get(f"/entries/{digest_of(house, 'pay:A-1043')}").text


def test_a_search_finds_by_a_part_of_the_key_and_by_state(client: TestClient) -> None:
    assert "pay:A-1042" in client.get("/entries", params={"q": "1042"}).text
    text = client.get("/entries", params={"state": "unknown"}).text
    assert re.findall(r"mail:(C-\d)", text)
    assert "pay:" not in text


def test_what_is_not_there_is_404(client: TestClient) -> None:
    assert client.get("/entries/00").status_code == client.get("/nowhere").status_code == 404


def test_without_a_password_only_names_of_this_machine_are_answered(client: TestClient) -> None:
    """A page of the web whose name points here gets nothing."""
    assert client.get("/", headers={"host": "evil.example"}).status_code == 403
    assert client.get("/", headers={"host": "localhost:5580"}).status_code == 200


def test_a_trusted_dashboard_answers_to_any_name(house: House) -> None:
    client = TestClient(dashboard(house.once, trusted=True))
    assert client.get("/", headers={"host": "ops.example"}).status_code == 200


@pytest.fixture
def locked(house: House) -> Iterator[TestClient]:
    with TestClient(dashboard(house.once, password="correct horse", token="t0ken")) as client:
        yield client


def test_a_locked_dashboard_shows_nothing_before_the_password(locked: TestClient) -> None:
    assert locked.get("/entries").status_code == 401
    answer = locked.get("/", headers={"accept": "text/html"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert locked.post("/login", data={"password": "wrong"}).status_code == 401
    entered = locked.post("/login", data={"password": "correct horse"}, follow_redirects=False)
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert locked.get("/entries").status_code == 200


def test_a_forged_or_changed_session_is_none(locked: TestClient) -> None:
    locked.post("/login", data={"password": "correct horse"})
    cookie = locked.cookies["effectonce_session"]
    for forged in ("", "9999999999.aa.bb", cookie.replace(cookie[0], "9", 1), cookie[:-1]):
        fresh = TestClient(locked.app, cookies={"effectonce_session": forged})
        assert fresh.get("/entries").status_code == 401


def test_a_token_opens_it_to_programs(locked: TestClient) -> None:
    assert locked.get("/metrics", headers={"authorization": "Bearer wrong"}).status_code == 401
    answer = locked.get("/metrics", headers={"authorization": "Bearer t0ken"})
    assert "effectonce_ledger_up 1.0" in answer.text


def test_too_many_wrong_passwords_close_the_door(house: House) -> None:
    client = TestClient(dashboard(house.once, password="correct horse"))
    assert [client.post("/login", data={"password": "no"}).status_code for _ in range(11)] == [401] * 10 + [429]
    assert client.post("/login", data={"password": "correct horse"}).status_code == 429


def test_a_form_of_another_site_changes_nothing(client: TestClient, house: House) -> None:
    hold_as_unknown(house, "csrf")
    page = f"/entries/{digest_of(house, 'mail:csrf')}"
    for data in ({}, {"csrf": "0" * 64}, {"csrf": token_in(TestClient(client.app).get(f"{page}/rerun").text)}):
        answer = client.post(f"{page}/rerun", data=data)
        assert (answer.status_code, "did not come from this dashboard" in answer.text) == (403, True)
    assert house.once.entries.one("mail:csrf").entry.state is State.UNKNOWN
    form = token_in(client.get(f"{page}/rerun").text)
    assert client.post(f"{page}/rerun", data={"csrf": form}, follow_redirects=False).status_code == 303
    assert house.once.entries.one("mail:csrf").entry.state is State.RELEASED


def test_a_read_only_dashboard_refuses_every_action(house: House) -> None:
    client = TestClient(dashboard(house.once, read_only=True))
    page = f"/entries/{digest_of(house, 'mail:C-1')}"
    form = token_in(TestClient(dashboard(house.once)).get(f"{page}/settle").text)
    for action in ("settle", "rerun", "reopen", "redact"):
        assert client.get(f"{page}/{action}").status_code == 403
        assert client.post(f"{page}/{action}", data={"csrf": form}).status_code == 403
    assert house.once.entries.one("mail:C-1").entry.state is State.UNKNOWN


def test_what_a_state_does_not_allow_is_refused_with_the_reason(client: TestClient, house: House) -> None:
    page = f"/entries/{digest_of(house, 'pay:A-1041')}"
    form = token_in(client.get(f"{page}/reopen").text)
    answer = client.post(f"{page}/settle", data={"csrf": form})
    assert (answer.status_code, "only what is held" in answer.text) == (409, True)
    assert client.post(f"{page}/erase", data={"csrf": form}).status_code == 404


def test_a_result_that_is_no_json_is_refused(client: TestClient, house: House) -> None:
    page = f"/entries/{digest_of(house, 'mail:C-1')}"
    form = token_in(client.get(f"{page}/settle").text)
    assert client.post(f"{page}/settle", data={"csrf": form, "result": "{"}).status_code == 409
    assert house.once.entries.one("mail:C-1").entry.state is State.UNKNOWN


def test_a_ledger_that_is_away_is_said_so(tmp_path: Any) -> None:
    house = House(f"sqlite:///{tmp_path}/none/ledger.sqlite")
    answer = TestClient(dashboard(house.once)).get("/")
    assert (answer.status_code, "The ledger does not answer" in answer.text) == (503, True)
    house.app.close()


def test_it_can_be_mounted_under_a_path(house: House) -> None:
    from starlette.applications import Starlette  # noqa: PLC0415 - beside its only use
    from starlette.routing import Mount  # noqa: PLC0415 - beside its only use

    client = TestClient(Starlette(routes=[Mount("/ops", dashboard(house.once))]))
    text = client.get("/ops/").text
    assert 'href="/ops/entries"' in text
    assert client.get("/ops/static/style.css").status_code == 200
    assert client.get(f"/ops/entries/{digest_of(house, 'pay:A-1041')}").status_code == 200


class _Context:
    def __init__(self, app: Any) -> None:
        self.app = app


def test_another_address_than_this_machines_needs_a_password(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EFFECTONCE_WEB_PASSWORD", raising=False)
    said = CliRunner().invoke(commands, ["web", "--host", "0.0.0.0"], obj=_Context(house.app))  # noqa: S104 - refused
    assert (said.exit_code, "EFFECTONCE_WEB_PASSWORD" in said.output) == (2, True)


def test_pages_of_a_large_ledger_are_looked_at_in_pieces(sqlite_url: str) -> None:
    """Each answer looks at a bounded number of rows, and says where it goes on."""
    house = House(sqlite_url)
    ledger: Any = house.once.ledger
    ledger.ping()
    with ledger.source.engine.begin() as connection:
        for number in range(120):
            claim = new_claim(key=f"pay:{number:03}")
            connection.execute(ledger.statements.insert, claim_values(claim, state=State.COMPLETED, keep=60.0))
    client, after, seen = TestClient(dashboard(house.once)), "", set()
    for _ in range(4):
        text = client.get("/entries", params={"after": after}).text
        seen |= set(re.findall(r"pay:(\d{3})", text))
        more = re.search(r"after=(\w{32})", text)
        if more is None:
            break
        after = more[1]
    assert len(seen) == 120
    leaf = ledger.survey.search("pay:1", state=None, limit=50, look=60, after=None)
    assert (leaf.looked, leaf.after is not None) == (60, True)
    with ledger.source.engine.connect() as connection:
        plan = connection.execute(sa.text(f"explain query plan {ledger.statements.standing.text}")).all()
    assert "effectonce_waiting" in str(plan)
    house.close()


def test_several_ledgers_are_added_up_and_chosen_from(tmp_path: Any) -> None:
    places = {"pay": f"sqlite:///{tmp_path}/pay.sqlite", "": f"sqlite:///{tmp_path}/rest.sqlite"}
    house = House({"pay": places["pay"], "default": places[""]})  # type: ignore[arg-type]
    house.deliver("pay", "A")
    house.deliver("pay", "A")
    house.hold("mail", "B", id="b")
    client = TestClient(dashboard(house.once))
    house.once.write_history()
    assert "pay:A" in client.get("/").text
    texts = [client.get("/entries", params={"ledger": str(number)}).text for number in range(2)]
    assert ["pay:A" in text for text in texts] != ["mail:B" in text for text in texts]
    assert sum("pay:A" in text for text in texts) == sum("mail:B" in text for text in texts) == 1
    house.close()
