"""Pages of Django's admin: effects, read-only, with the actions of the commands, in the reader's language.

``effectonce.view_entries`` lets a person look, ``effectonce.change_entries`` settle, rerun, reopen and redact. No row
is ever changed by Django: an action is a statement of the ledger, on condition of what was seen, and the person's name
stands in the timeline.
"""

import json
from datetime import UTC, datetime
from typing import Any, Final

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from effectonce.app.entries import Seen
from effectonce.app.extension import EffectOnce
from effectonce.app.installed import installed
from effectonce.app.timeline import actions_for, timeline
from effectonce.contrib.django.models import MODELS
from effectonce.domain.claims import State
from effectonce.domain.steps import Done, Failed
from effectonce.errors import EffectOnceError

_MODEL: Final = next(model for model in MODELS if model.__name__ == "Entries")
_ACTIONS: Final = ("settle", "rerun", "reopen", "redact")
_MICROS: Final = 1_000_000


class StateFilter(admin.SimpleListFilter):
    """By state, in words."""

    title = _("State")
    parameter_name = "state"

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        """All states."""
        return [(str(state.value), gettext(state.name.lower())) for state in State]

    def queryset(self, _request: HttpRequest, queryset: Any) -> Any:
        """Those in the chosen one."""
        return queryset.filter(state=self.value()) if self.value() else queryset


@admin.register(_MODEL)
class EntriesAdmin(admin.ModelAdmin):  # type: ignore[type-arg,unused-ignore]
    """Effects: a list, a page for each, and a page that asks before each action."""

    list_display = ("effect", "stands", "when", "attempts", "deaths", "task_id")
    list_display_links = None
    list_filter = (StateFilter,)
    search_fields = ("key", "task_id")
    ordering = ("digest",)
    actions = None
    show_full_result_count = False
    list_per_page = 50

    @admin.display(description=_("Effect"))
    def effect(self, row: Any) -> str:
        """A link to its page; the key is escaped."""
        address = reverse("admin:effectonce_effect", args=[bytes(row.digest).hex()])
        shown: str = format_html('<a href="{}">{}</a>', address, row.key or gettext("(redacted)"))
        return shown

    @admin.display(description=_("State"))
    def stands(self, row: Any) -> str:
        """In words."""
        return str(gettext(State(row.state).name.lower()))

    @admin.display(description=_("Since"))
    def when(self, row: Any) -> datetime:
        """As a time."""
        return datetime.fromtimestamp(row.since / _MICROS, UTC)

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Nobody: entries come from tasks."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _row: Any = None) -> bool:
        """Nobody: an entry that is gone is an effect that happens again."""
        return False

    def has_change_permission(self, _request: HttpRequest, _row: Any = None) -> bool:
        """Nobody, through Django's own form."""
        return False

    def has_view_permission(self, request: HttpRequest, _row: Any = None) -> bool:
        """Who may look; whoever may act may look too."""
        return bool(request.user.has_perm("effectonce.view_entries")) or may_act(request)

    def get_urls(self) -> list[URLPattern]:
        """Our pages before Django's own, whose addresses cannot hold bytes."""
        wrap = self.admin_site.admin_view
        return [
            path("effect/<str:digest>/", wrap(self.effect_page), name="effectonce_effect"),
            path("effect/<str:digest>/<str:action>/", wrap(self.action_page), name="effectonce_action"),
            *super().get_urls(),
        ]

    def effect_page(self, request: HttpRequest, digest: str) -> HttpResponse:
        """One effect with its timeline. Its result stays hidden."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        once, seen = _seen(digest)
        moments = [(moment, instant(moment.at)) for moment in timeline(seen, once.entries.history(seen))]
        offered = actions_for(seen.entry.state) if may_act(request) else ()
        return self._page(request, "admin/effectonce/effect.html", seen, moments=moments, offered=offered)

    def action_page(self, request: HttpRequest, digest: str, action: str) -> HttpResponse:
        """Ask, and on POST do."""
        if not may_act(request):
            raise PermissionDenied
        once, seen = _seen(digest)
        if action not in _ACTIONS:
            raise Http404
        if request.method != "POST":
            return self._page(request, "admin/effectonce/ask.html", seen, action=action)
        try:
            _act(once, request, digest, action)
        except (EffectOnceError, ValueError) as error:
            self.message_user(request, str(error), messages.ERROR)
        else:
            self.message_user(request, f"{gettext(action)}: {gettext('Done')}", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:effectonce_effect", args=[digest]))

    def _page(self, request: HttpRequest, template: str, seen: Seen, **told: Any) -> HttpResponse:
        entry = seen.entry
        context = {
            **self.admin_site.each_context(request),
            "title": entry.key or gettext("(redacted)"),
            "opts": self.opts,
            "entry": entry,
            "digest": entry.digest.hex(),
            "attempt": entry.attempt.hex(),
            "state": entry.state.name.lower(),
            "since": instant(entry.since),
            "result_bytes": None if entry.result is None else len(entry.result),
            **told,
        }
        return TemplateResponse(request, template, context)


def may_act(request: HttpRequest) -> bool:
    """Who may settle, rerun, reopen and redact."""
    return bool(request.user.has_perm("effectonce.change_entries"))


def instant(seconds: float) -> str:
    """Epoch seconds in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _act(once: EffectOnce, request: HttpRequest, digest: str, action: str) -> None:
    entries = once.entries.by(request.user.get_username())
    if action == "settle":
        said = request.POST.get("result", "").strip()
        failed = request.POST.get("outcome") == "failed"
        message = request.POST.get("message", "").strip() or "settled by a person"
        entries.settle(digest, Failed(message) if failed else Done(json.loads(said) if said else None))
    else:
        {"rerun": entries.rerun, "reopen": entries.reopen, "redact": entries.redact}[action](digest)


def _seen(digest: str) -> tuple[EffectOnce, Seen]:
    """The effect in whichever guarded app of this process has it."""
    for once in installed():
        found = once.entries.find(digest)
        if found:
            return once, found[0]
    raise Http404
