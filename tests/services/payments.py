"""A payment server of the tests: one that honours ``Idempotency-Key``, or one that charges at each request.

It runs in a thread of the test's process, so it outlives every worker. It notes each request and each charge. A
request for an order that is *deaf* is charged, and its answer never comes: the connection is closed.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Payments:
    """The server and its book; ``url`` is where to post ``{"order": ..., "amount": ...}``."""

    def __init__(self, *, honours: bool) -> None:
        self._honours = honours
        self._lock = threading.Lock()
        self.requests: list[tuple[str, str]] = []
        self.charges: list[tuple[str, str]] = []
        self._answers: dict[str, dict[str, Any]] = {}
        self.deaf: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._requests())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/charges"

    def charged(self, order: str) -> int:
        """How often an order was charged."""
        with self._lock:
            return len([each for each, _ in self.charges if each == order])

    def keys(self, order: str) -> list[str]:
        """The idempotency keys that were shown with an order, one for each request."""
        with self._lock:
            return [key for each, key in self.requests if each == order]

    def charge(self, order: str, key: str) -> dict[str, Any] | None:
        """Take the money; None when the answer is to be lost."""
        with self._lock:
            self.requests.append((order, key))
            answer = self._answers.get(key) if self._honours else None
            if answer is None:
                self.charges.append((order, key))
                answer = self._answers[key] = {"order": order, "charge": len(self.charges)}
            return None if order in self.deaf else answer

    def found(self, key: str) -> dict[str, Any] | None:
        """What a charge with this key was answered; a server that looks up keys need not honour them."""
        with self._lock:
            return self._answers.get(key)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _requests(self) -> type[BaseHTTPRequestHandler]:
        payments = self

        class Requests(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["order"]
                self._tell(payments.charge(order, self.headers.get("Idempotency-Key", "")))

            def do_GET(self) -> None:
                self._tell(payments.found(self.path.rpartition("/")[2]) or {})

            def _tell(self, answer: dict[str, Any] | None) -> None:
                if answer is None:
                    self.close_connection = True
                    return
                body = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        return Requests
