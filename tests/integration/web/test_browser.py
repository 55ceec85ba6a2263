"""The dashboard in a real browser, with a keyboard and an accessibility check; it makes the pictures of the docs."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from effectonce.domain.claims import State
from tests.integration.seeing.conftest import House
from tests.integration.web.conftest import hold_as_unknown, served
from tests.services.tools import chromium

PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
PAGES = ["/", "/entries", "/outbox", "/ticks", "/doctor?now=1"]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium()), headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(house: House) -> Iterator[str]:
    with served(house) as address:
        yield address


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(locale="en-GB", viewport={"width": 1280, "height": 860})
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if "Content Security" in message.text else None)
    yield page
    context.close()
    assert faults == []


def entry_of(house: House, address: str, key: str) -> str:
    return f"{address}/entries/{house.once.entries.one(key).entry.digest.hex()}"


def state_of(house: House, key: str) -> State:
    return house.once.entries.one(key).entry.state


def test_the_overview_leads_to_what_needs_a_look(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.get_by_role("status")).to_contain_text("Needs a look")
    page.get_by_role("link", name=re.compile("^Held")).click()
    expect(page.get_by_role("link", name="mail:C-1", exact=True)).to_be_visible()


def test_the_overview_is_kept_fresh(page: Page, address: str) -> None:
    page.goto(address)
    with page.expect_response(lambda answer: answer.request.headers.get("hx-request") == "true") as fresh:
        pass
    assert fresh.value.ok
    expect(page.get_by_role("status")).to_have_count(1)


def test_the_timeline_of_a_key_that_was_doubled_and_taken_over(page: Page, address: str) -> None:
    page.goto(f"{address}/entries")
    page.get_by_label("Key, task id or digest").fill("B-7")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="mail:B-7").click()
    line = page.get_by_role("listitem").filter(has=page.locator("time"))
    expect(line.filter(has_text="put off")).to_contain_text("visibility expired")
    expect(line.filter(has_text="taken over")).to_contain_text("takeover")


@pytest.mark.parametrize(
    ("action", "after"), [("settle", State.COMPLETED), ("rerun", State.RELEASED)], ids=["settle", "rerun"]
)
def test_what_is_held_is_settled_or_run_again(
    page: Page, address: str, house: House, action: str, after: State
) -> None:
    key = f"by-{action}"
    hold_as_unknown(house, key)
    page.goto(entry_of(house, address, f"mail:{key}"))
    page.get_by_role("link", name=action).click()
    assert state_of(house, f"mail:{key}") is State.UNKNOWN
    if action == "settle":
        page.get_by_label("Its result, as JSON").fill('{"sent": true}')
    page.get_by_role("button", name=action).click()
    expect(page.get_by_role("status")).to_contain_text(f"Done: {action}")
    expect(page.get_by_role("listitem").filter(has_text="by=dashboard")).to_have_count(1)
    assert state_of(house, f"mail:{key}") is after


def test_a_finished_effect_is_reopened_and_a_released_one_offers_nothing(
    page: Page, address: str, house: House
) -> None:
    house.deliver("pay", "reopened")
    page.goto(entry_of(house, address, "pay:reopened"))
    page.get_by_role("link", name="reopen").click()
    page.get_by_role("button", name="reopen").click()
    expect(page.get_by_role("status")).to_contain_text("Done: reopen")
    assert state_of(house, "pay:reopened") is State.RELEASED
    expect(page.get_by_text("Nothing: it goes on by itself.")).to_be_visible()


def test_a_redacted_effect_shows_no_key_any_more(page: Page, address: str, house: House) -> None:
    house.deliver("pay", "Anna")
    page.goto(entry_of(house, address, "pay:Anna"))
    page.get_by_role("link", name="redact").click()
    page.get_by_role("link", name="Cancel").click()
    assert state_of(house, "pay:Anna") is State.COMPLETED
    page.get_by_role("link", name="redact").click()
    page.get_by_role("button", name="redact").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("(redacted)")
    assert "Anna" not in page.content()


def test_a_read_only_dashboard_offers_nothing(page: Page, house: House) -> None:
    with served(house, read_only=True) as address:
        page.goto(entry_of(house, address, "mail:C-1"))
        expect(page.get_by_text("This dashboard is read-only.")).to_be_visible()
        page.goto(f"{page.url}/settle")
        expect(page.get_by_role("alert")).to_contain_text("read-only")


def test_a_wrong_password_and_the_right_one(page: Page, house: House) -> None:
    with served(house, password="correct horse") as address:
        page.goto(address)
        page.get_by_label("Password").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("That was not it")
        page.get_by_label("Password").fill("correct horse")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_contain_text("Needs a look")
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Password")).to_be_visible()


def test_a_keyboard_alone_gets_to_a_key(page: Page, address: str) -> None:
    page.goto(f"{address}/entries?state=unknown")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    for _ in range(4):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("mail:")


def test_russian_is_chosen_and_kept(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("link", name="Русский").click()
    expect(page.get_by_role("status")).to_contain_text("Требует внимания")
    page.get_by_role("link", name="Записи").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Записи")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_fault_for_those_who_cannot_see(
    browser: Browser, address: str, house: House, scheme: Any
) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 860})
    page = context.new_page()
    for where in [*(address + each for each in PAGES), entry_of(house, address, "mail:B-7")]:
        page.goto(where)
        found = Axe().run(page).response["violations"]
        serious = [
            (where, each["id"], [node["html"][:90] for node in each["nodes"][:3]])
            for each in found
            if each["impact"] in {"serious", "critical"}
        ]
        assert serious == []
    context.close()


@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_is_wider_than_the_screen(browser: Browser, address: str, house: House, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800})
    page = context.new_page()
    for where in [*(address + each for each in PAGES), entry_of(house, address, "mail:B-7")]:
        page.goto(where)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, where
    context.close()


def test_the_pictures_of_the_docs(browser: Browser, address: str, house: House, tmp_path: Path) -> None:
    """``EFFECTONCE_PICTURES=write`` keeps them."""
    folder = PICTURES if os.environ.get("EFFECTONCE_PICTURES") == "write" else tmp_path
    shots = [
        ("overview", "/", "light", 1280),
        ("overview-dark", "/", "dark", 1280),
        ("overview-phone", "/", "light", 390),
        ("entries", "/entries", "light", 1280),
        ("timeline", entry_of(house, "", "mail:B-7"), "light", 1280),
        ("timeline-dark", entry_of(house, "", "mail:C-1"), "dark", 1280),
        ("doctor", "/doctor?now=1", "light", 1280),
        ("overview-ru", "/?lang=ru", "dark", 1280),
    ]
    for name, where, scheme, width in shots:
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 860})  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(address + where)
        page.screenshot(path=folder / f"dashboard-{name}.png", full_page=True)
        assert (folder / f"dashboard-{name}.png").stat().st_size > 10_000
        context.close()
