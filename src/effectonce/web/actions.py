"""The pages that change something. Each is asked for on a page of its own, and sent by a form with a token."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from effectonce.app.timeline import actions_for
from effectonce.domain.steps import Done, Failed
from effectonce.errors import EffectOnceError
from effectonce.web.gate import COOKIE, LIFE
from effectonce.web.pages import entry_answer, not_found, seen_by
from effectonce.web.shown import desk_of, link_of, page

_LARGEST: Final = 256 * 1024
ACTIONS: Final = frozenset({"settle", "rerun", "reopen", "redact"})


def ask(request: Request) -> HTMLResponse:
    """Ask before anything is changed."""
    seen, action = seen_by(request), request.path_params["action"]
    if seen is None or action not in ACTIONS:
        return not_found(request)
    if desk_of(request).read_only:
        return entry_answer(request, seen, refused="This dashboard is read-only.", status=403)
    if action not in actions_for(seen.entry.state):
        return entry_answer(request, seen, refused="The state of this effect does not allow that.", status=409)
    return page(request, "ask.html", seen=seen, entry=seen.entry, action=action)


async def act(request: Request) -> Response:
    """Do it; the page of the effect says how it went."""
    return await run_in_threadpool(_act, request, await _form_of(request))


def _act(request: Request, form: Mapping[str, str]) -> Response:
    desk, seen, action = desk_of(request), seen_by(request), request.path_params["action"]
    if seen is None or action not in ACTIONS:
        return not_found(request)
    if desk.read_only:
        return entry_answer(request, seen, refused="This dashboard is read-only.", status=403)
    if not desk.keys.is_form(request, form.get("csrf", "")):
        return entry_answer(request, seen, refused="This form did not come from this dashboard; try again.", status=403)
    try:
        _change(desk.once.entries.by("dashboard"), action, seen.entry.digest.hex(), form)
    except (EffectOnceError, ValueError) as error:
        return entry_answer(request, seen, refused=str(error), status=409)
    return RedirectResponse(f"{link_of(request)('entry', digest=seen.entry.digest.hex())}?done={action}", 303)


def _change(entries: Any, action: str, digest: str, form: Mapping[str, str]) -> None:
    changes: dict[str, Callable[[], Any]] = {
        "settle": lambda: entries.settle(digest, _outcome(form)),
        "rerun": lambda: entries.rerun(digest),
        "reopen": lambda: entries.reopen(digest),
        "redact": lambda: entries.redact(digest),
    }
    changes[action]()


def _outcome(form: Mapping[str, str]) -> Done | Failed:
    if form.get("outcome") == "failed":
        return Failed(form.get("message", "").strip() or "settled by a person")
    said = form.get("result", "").strip()
    return Done(json.loads(said) if said else None)


async def _form_of(request: Request) -> Mapping[str, str]:
    """The fields of a form; one that is too large has none."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST:
            return {}
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def login_page(request: Request) -> HTMLResponse:
    """Ask for the password."""
    return page(request, "login.html", wrong=False)


async def login(request: Request) -> Response:
    """Let in who knows the password; too many wrong ones close the door for a minute."""
    form, keys = await _form_of(request), desk_of(request).keys
    if keys.is_barred():
        return page(request, "login.html", status=429, wrong=True)
    if not keys.is_password(form.get("password", "")):
        import time  # noqa: PLC0415 - beside its only use

        keys.wrong.append(time.monotonic())
        return page(request, "login.html", status=401, wrong=True)
    answer = RedirectResponse(link_of(request)("overview"), 303)
    is_secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, keys.new_session(), max_age=LIFE, httponly=True, samesite="strict", secure=is_secure)
    return answer


async def logout(request: Request) -> Response:
    """End the session of this browser."""
    form = await _form_of(request)
    answer = RedirectResponse(link_of(request)("login"), 303)
    if desk_of(request).keys.is_form(request, form.get("csrf", "")):
        answer.delete_cookie(COOKIE)
    return answer
