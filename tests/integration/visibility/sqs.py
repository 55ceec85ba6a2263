"""A stand-in for Amazon SQS on this machine: as much of its JSON protocol as kombu speaks.

It keeps what the tests are about as SQS does: a received message is invisible for the visibility timeout of its
request or its queue, each receipt has a handle of its own, and a handle is good until the message was received again.
"""

import hashlib
import itertools
import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from uuid import uuid4

POLL = 0.02
OPTIONS = {"region": "eu-north-1", "is_secure": False, "wait_time_seconds": 1}
"""What kombu must be told besides the address."""


@dataclass
class Stored:
    """One message; *visible_at* is monotonic."""

    body: str
    number: str = field(default_factory=lambda: str(uuid4()))
    visible_at: float = 0.0
    received: int = 0
    handle: str = ""


class Refused(Exception):
    """An error that SQS answers with, by its code."""


class Sqs:
    """The service: queues by name. *calls* counts the actions that came."""

    def __init__(self) -> None:
        self.queues: dict[str, list[Stored]] = {}
        self.timeouts: dict[str, float] = {}
        self.calls: list[str] = []
        self._lock = threading.Lock()
        self._handles = itertools.count()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
                action = self.headers["X-Amz-Target"].rpartition(".")[2]
                try:
                    status, answer = 200, service.answer(action, asked)
                except Refused as error:
                    status, answer = 400, {"__type": f"com.amazonaws.sqs#{error}", "message": str(error)}
                payload = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.0")
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The address for kombu."""
        return f"sqs://key:secret@127.0.0.1:{self._server.server_address[1]}//"

    def answer(self, action: str, asked: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(action)
        if action == "ReceiveMessage":
            return self._receive_in_time(asked)
        with self._lock:
            if "QueueUrl" in asked and _name(asked) not in self.queues:
                raise Refused("QueueDoesNotExist")
            answer: dict[str, Any] = getattr(self, f"_{action}")(asked)
        return answer

    def _address(self, name: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/{name}"

    def _ListQueues(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802 - the actions have SQS's names
        prefix = asked.get("QueueNamePrefix", "")
        return {"QueueUrls": [self._address(name) for name in self.queues if name.startswith(prefix)]}

    def _CreateQueue(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        name = asked["QueueName"]
        self.queues.setdefault(name, [])
        self.timeouts.setdefault(name, float(asked.get("Attributes", {}).get("VisibilityTimeout", 30)))
        return {"QueueUrl": self._address(name)}

    def _GetQueueUrl(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if asked["QueueName"] not in self.queues:
            raise Refused("QueueDoesNotExist")
        return {"QueueUrl": self._address(asked["QueueName"])}

    def _GetQueueAttributes(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        name = _name(asked)
        return {
            "Attributes": {
                "VisibilityTimeout": str(int(self.timeouts[name])),
                "ApproximateNumberOfMessages": str(len(self.queues[name])),
            }
        }

    def _SendMessage(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        stored = Stored(asked["MessageBody"], visible_at=time.monotonic() + float(asked.get("DelaySeconds", 0)))
        self.queues[_name(asked)].append(stored)
        return {"MessageId": stored.number, "MD5OfMessageBody": _md5(stored.body)}

    def _receive_in_time(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Wait for a message as long as asked to."""
        end = time.monotonic() + float(asked.get("WaitTimeSeconds", 0))
        while True:
            with self._lock:
                found = self._ReceiveMessage(asked)
            if found["Messages"] or time.monotonic() > end:
                return found
            time.sleep(POLL)

    def _ReceiveMessage(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        name, now = _name(asked), time.monotonic()
        ready = [stored for stored in self.queues[name] if stored.visible_at <= now]
        return {"Messages": [self._received(stored, name) for stored in ready[: asked.get("MaxNumberOfMessages", 1)]]}

    def _received(self, stored: Stored, name: str) -> dict[str, Any]:
        stored.visible_at = time.monotonic() + self.timeouts[name]
        stored.received += 1
        stored.handle = f"handle-{next(self._handles)}"
        return {
            "MessageId": stored.number,
            "ReceiptHandle": stored.handle,
            "Body": stored.body,
            "MD5OfBody": _md5(stored.body),
            "Attributes": {"ApproximateReceiveCount": str(stored.received)},
        }

    def _DeleteMessage(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self.queues[_name(asked)].remove(self._held(asked, _name(asked)))
        return {}

    def _ChangeMessageVisibility(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        stored = self._held(asked, _name(asked))
        stored.visible_at = time.monotonic() + float(asked["VisibilityTimeout"])
        return {}

    def _ChangeMessageVisibilityBatch(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if len(asked["Entries"]) > 10:
            raise Refused("TooManyEntriesInBatchRequest")
        done, failed = [], []
        for entry in asked["Entries"]:
            try:
                self._ChangeMessageVisibility({**entry, "QueueUrl": asked["QueueUrl"]})
                done.append({"Id": entry["Id"]})
            except Refused as error:
                failed.append({"Id": entry["Id"], "Code": str(error), "SenderFault": True})
        return {"Successful": done, "Failed": failed}

    def _held(self, asked: dict[str, Any], name: str) -> Stored:
        """The message of a receipt that is still good."""
        for stored in self.queues[name]:
            if stored.handle == asked["ReceiptHandle"]:
                if stored.visible_at <= time.monotonic():
                    raise Refused("MessageNotInflight")
                return stored
        raise Refused("ReceiptHandleIsInvalid")


def _name(asked: dict[str, Any]) -> str:
    return str(asked["QueueUrl"]).rpartition("/")[2]


def _md5(body: str) -> str:
    return hashlib.md5(body.encode(), usedforsecurity=False).hexdigest()
