"""Results and failures as bytes in the ledger.

The app's own result serializer writes them, so pickle is used only where the app says so. A stored result names its
content type, and is read only if the app accepts that type.
"""

from typing import Any

from kombu.exceptions import SerializationError
from kombu.serialization import dumps, loads, prepare_accept_content

from effectonce.errors import ResultNotEncodable


def encode_result(task: Any, result: Any) -> bytes:
    """Encode what a body returned; raises ResultNotEncodable, so that the body can still be rolled back."""
    serializer = task.app.conf.result_serializer
    try:
        content_type, encoding, payload = dumps(result, serializer=serializer)
    except (SerializationError, TypeError, ValueError) as error:
        raise ResultNotEncodable(task=task.name, serializer=serializer, reason=type(error).__name__) from error
    body = payload if isinstance(payload, bytes) else payload.encode("utf-8")
    return f"{content_type};{encoding}\n".encode() + body


def decode_result(task: Any, stored: bytes) -> Any:
    """Decode what `encode_result` made."""
    head, _, body = stored.partition(b"\n")
    content_type, _, encoding = head.decode().partition(";")
    conf = task.app.conf
    accept = conf.result_accept_content if conf.result_accept_content is not None else conf.accept_content
    return loads(body, content_type, encoding, accept=prepare_accept_content([*accept, conf.result_serializer]))


def encode_failure(task: Any, error: Exception) -> bytes:
    """Encode an exception that the policy remembers, as Celery's result backend would."""
    backend = task.backend
    return encode_result(task, backend.prepare_exception(error, serializer=task.app.conf.result_serializer))


def decode_failure(task: Any, stored: bytes) -> BaseException:
    """Make the remembered exception again."""
    error = task.backend.exception_to_python(decode_result(task, stored))
    return error if isinstance(error, BaseException) else RuntimeError(str(error))
