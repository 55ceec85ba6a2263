"""An app on a ledger in memory whose time stands still, so that what is printed can be compared."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from celery import Celery
from click.testing import CliRunner, Result

from effectonce import EffectOnce, Leased
from effectonce.app.copies import held_message
from effectonce.cli.once import once as commands
from effectonce.domain.claims import Claim, Entry, Granted, Outcome, State
from effectonce.domain.steps import End
from effectonce.stores.memory import MemoryLedger

NOON = 1_800_000_000.0
_numbers = count()


@dataclass
class Desk:
    """The app, its ledger, and what a person types."""

    app: Celery
    once: EffectOnce
    ledger: MemoryLedger
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def type(self, *words: str, **options: Any) -> Result:
        """Run ``celery -A shop once ...``."""
        return CliRunner().invoke(commands, list(words), obj=_Context(self.app), **options)

    def claim(self, order: str) -> Granted:
        """The first attempt at an order; everything about it is fixed."""
        claim = Claim(
            digest=order.encode().ljust(16, b"."),
            key=f"pay:{order}",
            attempt=b"attempt1",
            identity=b"i" * 16,
            task_id=f"id-{order}",
            fingerprint=b"f" * 12,
            lease=60.0,
            max_takeovers=5,
            keep=3600.0,
        )
        granted = self.ledger.claim(claim)
        assert isinstance(granted, Granted)
        return granted

    def effect(self, state: State, order: str) -> Entry:
        """An effect in *state*, with two steps; where it is held, its message waits."""
        held = self.claim(order)
        self.ledger.begin_step(held, "reserve", holds=False)
        self.ledger.end_step(held, "reserve", End(result=b"7"))
        self.ledger.begin_step(held, "pay", holds=True)
        match state:
            case State.COMPLETED:
                self.ledger.complete(held, Outcome(state=state, result=b"application/json;utf-8\n7", keep=3600.0))
            case State.FAILED:
                self.ledger.complete(held, Outcome(state=state, result=b"application/json;utf-8\n{}", keep=3600.0))
            case State.RELEASED:
                self.ledger.release(held, retries=2, reset=True, keep=3600.0)
            case State.UNKNOWN:
                self.ledger.mark_unknown(held.digest, held.attempt)
                self.ledger.hold(held.digest, self.message(order))
            case State.POISONED:
                entry = self.ledger.read(held.digest)
                assert entry is not None
                self.ledger.poison(entry, self.message(order))
            case State.CLAIMED:
                pass
        found = self.ledger.read(held.digest)
        assert found is not None
        return found

    def message(self, order: str) -> bytes:
        """A delivery of the task with this order, as a worker would keep it."""
        task = self.app.tasks["shop.pay"]
        request = task.request_stack.top or _request(task, order)
        return held_message(task, request)


def _request(task: Any, order: str) -> Any:
    from celery.app.task import Context  # noqa: PLC0415 - beside its only use

    return Context(id=f"id-{order}", task=task.name, args=[order], kwargs={}, argsrepr=f"('{order}',)", kwargsrepr="{}")


class _Context:
    def __init__(self, app: Celery) -> None:
        self.app = app


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk whose messages go nowhere, and are noted."""
    app = Celery("shop", broker="memory://", backend="cache+memory://", set_as_current=False)
    name = f"desk{next(_numbers)}"
    once = EffectOnce(app, ledger=f"memory://{name}")

    @app.task(name="shop.pay", shared=False, once=Leased("pay:{order}"))
    def pay(order: str) -> str:
        return order

    ledger = MemoryLedger.named(name)
    ticks = count()
    monkeypatch.setattr(ledger, "_clock", lambda: NOON + next(ticks) / 1_000_000)
    desk = Desk(app, once, ledger)
    monkeypatch.setattr(app, "send_task", lambda name, *_, **options: desk.sent.append((name, options)))
    yield desk
    app.close()
