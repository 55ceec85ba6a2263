"""How a page is put together: words in the reader's language, times, links, and the template."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from effectonce.web.gate import FORM, Keys
from effectonce.web.words import ENGLISH, LANGUAGES, RUSSIAN

_TEMPLATES: Final = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=select_autoescape(default=True, default_for_string=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_KILO: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What the pages are made of."""

    once: Any
    keys: Keys
    read_only: bool


def desk_of(request: Request) -> Desk:
    """The desk of the application that got this request."""
    found: Desk = request.app.state.desk
    return found


def language_of(request: Request) -> str:
    """The reader's language: what was chosen, else what the browser asks for, else English."""
    chosen = request.query_params.get("lang") or request.cookies.get("effectonce_lang", "")
    asked = request.headers.get("accept-language", "")[:2].lower()
    return next((each for each in (chosen, asked) if each in LANGUAGES), "en")


def link_of(request: Request) -> Callable[..., str]:
    """Makes addresses within the dashboard, wherever it is mounted."""
    root = request.scope.get("root_path", "")

    def link(name: str, **parts: Any) -> str:
        return f"{root}{request.app.url_path_for(name, **parts)}"

    return link


def page(request: Request, template: str, *, status: int = 200, **told: Any) -> HTMLResponse:
    """An answer made of *template*; everything that it is told is escaped there."""
    desk, language = desk_of(request), language_of(request)
    new = None if request.cookies.get(FORM) or desk.keys.is_locked else secrets.token_hex(16)
    if new is not None:
        request.cookies[FORM] = new
    words: Mapping[str, str] = RUSSIAN if language == "ru" else ENGLISH
    text = _TEMPLATES.get_template(template).render(
        **told,
        _=lambda said: words.get(said, said),
        lang=language,
        link=link_of(request),
        at=request.url.path.removeprefix(request.scope.get("root_path", "")) or "/",
        query=request.query_params,
        desk=desk,
        csrf=desk.keys.form_token(request),
        instant=instant,
        bytes_in_words=bytes_in_words,
    )
    answer = HTMLResponse(text, status)
    if new is not None:
        answer.set_cookie(FORM, new, httponly=True, samesite="strict", secure=request.url.scheme == "https")
    if request.query_params.get("lang") in LANGUAGES:
        answer.set_cookie("effectonce_lang", language, samesite="strict", httponly=True, max_age=365 * 24 * 3600)
    return answer


def instant(seconds: float) -> str:
    """Epoch seconds as people write them, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def bytes_in_words(number: float) -> str:
    """A size with its unit."""
    at = 0
    while number >= _KILO and at < len(_UNITS) - 1:
        number, at = number / _KILO, at + 1
    return f"{number:.0f} {_UNITS[at]}" if at == 0 else f"{number:.1f} {_UNITS[at]}"
