"""A process of the project that serves one request until it has an answer: prints status, replay and the rows."""

import os
import sys
import time

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.integration.django.settings"
django.setup()

from django.core.management import call_command  # noqa: E402 - apps must be loaded first
from django.http import HttpRequest, HttpResponse  # noqa: E402
from django.test import RequestFactory  # noqa: E402

from effectonce.http.django import IdempotencyMiddleware  # noqa: E402
from tests.integration.django.books import tasks  # noqa: E402
from tests.integration.django.books.models import Charge  # noqa: E402
from tests.integration.django.proj import once  # noqa: E402


def view(_request: HttpRequest) -> HttpResponse:
    """Write a row and send a message."""
    Charge.objects.create(order=1)
    tasks.mail.delay(1)
    return HttpResponse("charged", status=201)


def get_response(request: HttpRequest) -> HttpResponse:
    """Django's handler, as far as it matters."""
    return middleware.process_view(request, view, (), {}) or view(request)


middleware = IdempotencyMiddleware(get_response)


def main() -> None:
    """Ask until it is answered."""
    call_command("migrate", run_syncdb=True, verbosity=0)
    headers = {"Authorization": "Bearer ann", "Idempotency-Key": "k"}
    end = time.monotonic() + 30
    while True:
        request = RequestFactory().post("/orders", "1", content_type="text/plain", headers=headers)
        answer = middleware(request)
        if answer.status_code != 409 or time.monotonic() > end:
            break
        time.sleep(0.05)
    waiting = once.outbox_store().waiting(stage=None, limit=9)
    said = (answer.status_code, "Idempotency-Replayed" in answer.headers, Charge.objects.count(), len(waiting))
    sys.stdout.write(f"{said}\n")


if __name__ == "__main__":
    main()
