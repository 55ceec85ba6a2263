"""Sites on each protocol and database."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import _state

from tests.integration.http.sites import AsgiSite, Site, WsgiSite

KINDS: dict[str, type[WsgiSite | AsgiSite]] = {"wsgi": WsgiSite, "asgi": AsgiSite}


@pytest.fixture
def sites() -> Iterator[Callable[..., Any]]:
    """Open a site: ``sites("wsgi", ledger, **terms)``."""
    shared, opened = set(_state._on_app_finalizers), list[Site]()

    def open_site(kind: str, ledger: Any, **terms: Any) -> Any:
        site = KINDS[kind](ledger).using(**terms)
        opened.append(site)
        return site

    yield open_site
    for each in opened:
        each.close()
    _state._on_app_finalizers.intersection_update(shared)


@pytest.fixture(params=["wsgi", "asgi"])
def kind(request: pytest.FixtureRequest) -> str:
    """A protocol."""
    return str(request.param)


@pytest.fixture(params=[("wsgi", "sqlite"), ("asgi", "postgresql")], ids=["wsgi-sqlite", "asgi-postgresql"])
def site(request: pytest.FixtureRequest, sites: Callable[..., Any]) -> Any:
    """Both kinds, and both databases."""
    kind, database = request.param
    return sites(kind, request.getfixturevalue(f"{database}_url"))


@pytest.fixture
def lite(sites: Callable[..., Any], kind: str, sqlite_url: str) -> Any:
    """A site of each kind, where the database makes no difference."""
    return sites(kind, sqlite_url)
