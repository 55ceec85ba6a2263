"""One view, which calls a task directly and may fail after it."""

from typing import Any

from django.http import HttpResponse
from django.urls import path

from tests.integration.django.books import tasks


def order(request: Any, number: int) -> HttpResponse:
    """Charge an order in the request."""
    said = tasks.charge(number)
    if "fail" in request.GET:
        raise ValueError(number)
    return HttpResponse(said)


urlpatterns = [path("orders/<int:number>", order)]
