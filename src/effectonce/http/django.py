"""The Django middleware: ``"effectonce.http.django.IdempotencyMiddleware"`` in ``MIDDLEWARE``.

Where the ledger is in Django's database, the view runs inside an ``atomic`` block of ours: what it writes with the
plain ORM, what it sends, and the record of its answer commit together, before the answer leaves. Options stand in
``EFFECTONCE_HTTP``, those of a view in `idempotency`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from hashlib import blake2b
from itertools import chain
from typing import Any, Final, TypeVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.module_loading import import_string

from effectonce.app.http import Conversation
from effectonce.app.installed import installed
from effectonce.domain.canonical import encode_text
from effectonce.errors import FenceRefused, SettingsInvalid
from effectonce.http import answers
from effectonce.http.answers import Answer
from effectonce.http.callers import caller_of
from effectonce.http.desk import Desk, Seen, Terms
from effectonce.stores.sql.hosted import HostedLedger

SETTING: Final = "EFFECTONCE_HTTP"
_VIEW: Final = "effectonce_http"
_SERVING: Final = "_effectonce_serving"
_OF_A_VIEW: Final = frozenset({"required", "transaction", "exempt"})

View = TypeVar("View", bound=Callable[..., Any])


def idempotency(**options: bool) -> Callable[[View], View]:
    """Options of one view: ``required`` has it answer 400 without a key.

    ``transaction=False`` leaves its transactions to itself, as a view needs that uses ``atomic(durable=True)``, and
    gives it the weaker form. ``exempt=True``: keys mean nothing here. Raises SettingsInvalid for another option.
    """
    unknown = sorted(set(options) - _OF_A_VIEW)
    if unknown:
        raise SettingsInvalid(faults=[f"idempotency() has no option {', '.join(unknown)}"])

    def mark(view: View) -> View:
        setattr(view, _VIEW, options)
        return view

    return mark


class IdempotencyMiddleware:
    """Lets requests under an `Idempotency-Key` take effect once. After whatever finds out ``request.user``."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response
        self._made: Desk | None = None

    @property
    def _desk(self) -> Desk:
        """Made at the first request, when the project's Celery app has been loaded."""
        if self._made is None:
            options = dict(getattr(settings, SETTING, {}))
            once = options.pop("once", None) or _the_only_one()
            self._made = Desk(Terms(once=import_string(once) if isinstance(once, str) else once, **options))
        return self._made

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Serve one request."""
        try:
            response = self._get_response(request)
        except BaseException:
            _give_up(request)
            raise
        serving: _Serving | None = vars(request).pop(_SERVING, None)
        return response if serving is None else serving.end(response)

    def process_view(
        self,
        request: HttpRequest,
        view: Callable[..., HttpResponse],
        _args: Any,
        _kwargs: Any,
    ) -> HttpResponse | None:
        """Claim the request's effect before its view runs; an answer of ours keeps it from running."""
        options = getattr(view, _VIEW, {})
        if options.get("exempt"):
            return None
        seen = _seen(request)
        key = self._desk.key_of(seen, required=options.get("required"))
        if key is None or isinstance(key, Answer):
            return None if key is None else _response(key)
        conversation = self._desk.converse(seen, key, caller=self._caller(request), body=_digest(request))
        refusal = self._desk.admit(conversation) or _opened(conversation, alone=options.get("transaction") is False)
        if refusal is not None:
            return _response(refusal)
        vars(request)[_SERVING] = _Serving(self._desk, conversation)
        return None

    def _caller(self, request: HttpRequest) -> str:
        if self._desk.terms.caller is not None:
            return str(self._desk.terms.caller(request))
        user = getattr(request, "user", None)
        known = user is not None and user.is_authenticated
        return caller_of(
            user=str(user.pk) if known and user is not None else request.META.get("REMOTE_USER"),
            authorization=request.headers.get("Authorization"),
            has_cookies=user is None and bool(request.META.get("HTTP_COOKIE")),
        )


class _Serving:
    """A request whose view runs."""

    def __init__(self, desk: Desk, conversation: Conversation) -> None:
        self._desk = desk
        self.conversation = conversation
        self._current = ExitStack()
        self._current.enter_context(conversation.current())

    def end(self, response: HttpResponse) -> HttpResponse:
        """Settle with what the view has answered."""
        self._current.close()
        try:
            body, is_whole = self._read(response)
            said = Answer(status=response.status_code, headers=list(response.items()), body=body)
            given = self._desk.settle(self.conversation, said, is_whole=is_whole)
        except BaseException:
            self.conversation.exchange.let_go()
            raise
        return response if given is said else _response(given)

    def _read(self, response: HttpResponse) -> tuple[bytes, bool]:
        """The body as far as it may be kept, and whether that is all; a stream still streams."""
        if not response.streaming:
            return response.content, True
        if response.is_async:
            return b"", False
        pieces: list[bytes] = []
        left = iter(response.streaming_content)
        while sum(map(len, pieces)) <= self._desk.terms.max_response_bytes:
            piece = next(left, None)
            if piece is None:
                response.streaming_content = pieces
                return b"".join(pieces), True
            pieces.append(piece)
        response.streaming_content = chain(pieces, left)
        return b"".join(pieces), False

    def give_up(self) -> None:
        """Nothing was answered."""
        self._current.close()
        self.conversation.exchange.let_go()


def _opened(conversation: Conversation, *, alone: bool) -> Answer | None:
    """Begin the view's block, where the ledger is in Django's database and the view leaves it to us."""
    if alone or not isinstance(conversation.once.ledger, HostedLedger):
        return None
    try:
        conversation.exchange.open()
    except FenceRefused:
        conversation.exchange.let_go()
        return answers.running(1)
    except BaseException:
        conversation.exchange.let_go()
        raise
    return None


def _give_up(request: HttpRequest) -> None:
    serving: _Serving | None = vars(request).pop(_SERVING, None)
    if serving is not None:
        serving.give_up()


def _the_only_one() -> Any:
    found = list(installed())
    if len(found) != 1:
        fault = f"{SETTING}['once'] must name the app's EffectOnce, as 'proj.celery.once': there are {len(found)}"
        raise SettingsInvalid(faults=[fault])
    return found[0]


def _seen(request: HttpRequest) -> Seen:
    key = request.META.get("HTTP_IDEMPOTENCY_KEY")
    return Seen(
        method=request.method or "",
        path=request.path,
        query=request.META.get("QUERY_STRING", ""),
        content_type=request.META.get("CONTENT_TYPE", ""),
        keys=[] if key is None else [key],
    )


def _digest(request: HttpRequest) -> bytes:
    """A digest of the body; of a form with files, of what Django has read of it, since it reads it once."""
    if request.content_type != "multipart/form-data":
        return blake2b(request.body, digest_size=16).digest()
    made = blake2b(digest_size=16)
    for piece in _fields(request):
        made.update(piece)
    return made.digest()


def _fields(request: HttpRequest) -> Iterator[bytes]:
    for name, values in request.POST.lists():
        for value in values:
            yield encode_text(name) + encode_text(value)
    for name, files in request.FILES.lists():
        for file in files:
            yield encode_text(name) + encode_text(file.name or "") + encode_text(str(file.size))
            yield from file.chunks()
            file.seek(0)


def _response(answer: Answer) -> HttpResponse:
    response = HttpResponse(answer.body, status=answer.status)
    del response.headers["Content-Type"]
    for name, value in answer.headers:
        response[name] = value
    return response
