"""Included by workers that cannot store a result, or cannot publish, as often as a file says.

``refuse-results`` and ``refuse-publishes`` in the shop's folder hold the number of refusals that are left. A worker of
one process and one thread uses them up in order.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from celery.signals import worker_process_init, worker_ready
from kombu.exceptions import OperationalError
from kombu.messaging import Producer

from tests.integration.worker import shop


def _refuses(name: str) -> bool:
    file = shop.FOLDER / f"refuse-{name}"
    left = int(file.read_text()) if file.exists() else 0
    if left:
        file.write_text(str(left - 1))
        shop.outside(f"refused-{name}")
    return left > 0


def _refusing(plain: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(plain)
    def refusing(*args: Any, **kwargs: Any) -> Any:
        if _refuses(name):
            message = f"no {name} today"
            raise OperationalError(message)
        return plain(*args, **kwargs)

    return refusing


def forget(**_: Any) -> None:
    """Spoil this process once; each of its threads has a backend of its own."""
    backends = type(shop.app.backend)
    if "store_result" not in vars(backends):
        setattr(backends, "store_result", _refusing(backends.store_result, "results"))  # noqa: B010
        setattr(Producer, "publish", _refusing(Producer.publish, "publishes"))  # noqa: B010


worker_process_init.connect(forget)
worker_ready.connect(forget)
