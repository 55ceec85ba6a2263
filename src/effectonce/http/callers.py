"""Who calls, where nothing is said: what a server or an authentication middleware has found out, or the credentials.

The whole ``Authorization`` header names the caller, and so does nobody else who has not the same one. A token that is
new in each attempt makes each attempt another caller; then ``caller=`` must say who it is. A cookie is no name: it
changes, and which of them tells the user only the application knows. So a request that has nothing else is refused.
"""

from typing import Any

from effectonce.errors import SettingsInvalid


def caller_of(*, user: str | None, authorization: str | None, has_cookies: bool) -> str:
    """The caller as text; empty for one who shows nothing. Raises SettingsInvalid where only cookies may tell."""
    if user:
        return f"user {user}"
    if authorization:
        return f"authorization {authorization}"
    if has_cookies:
        fault = (
            "a request under an Idempotency-Key has cookies and no Authorization: say who calls with caller=, as text "
            "that stays the same from one attempt to the next, or caller=lambda _: '' where anybody may call"
        )
        raise SettingsInvalid(faults=[fault])
    return ""


def name_of(user: Any) -> str | None:
    """The name of Starlette's ``scope["user"]``, if it is authenticated."""
    if user is None or not getattr(user, "is_authenticated", False):
        return None
    try:
        return str(user.identity)
    except (AttributeError, NotImplementedError):
        return str(getattr(user, "display_name", "")) or None
