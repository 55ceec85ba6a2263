"""A body that waits for its turn holds no connection between two looks."""

import secrets

import pytest

from effectonce.domain.claims import Claim, Outcome, State
from effectonce.domain.deliveries import Delivery
from effectonce.runtime.plan import Encoded, Plan
from effectonce.runtime.signals import Refusal
from effectonce.runtime.transactional import TransactionalAttempt
from effectonce.stores.sql.ledger import SqlLedger


def claim(digest: bytes) -> Claim:
    return Claim(
        digest=digest,
        key="charge:1",
        attempt=secrets.token_bytes(8),
        identity=secrets.token_bytes(16),
        task_id="",
        fingerprint=b"",
        lease=30.0,
        max_takeovers=5,
    )


def test_a_waiting_message_gives_its_connection_back_between_two_looks(ledger: SqlLedger) -> None:
    digest = secrets.token_bytes(16)
    pool = ledger.source.engine.pool
    looked: list[int] = []
    with ledger.work(claim(digest), granted=None, allow_escape=False, keep=None) as holder:
        holder.enter()

        def sleep(_seconds: float) -> None:
            looked.append(pool.checkedout())  # type: ignore[attr-defined]
            if len(looked) == 2:
                assert holder.finish(Outcome(state=State.COMPLETED, result=b"first"))
                holder.commit()

        plan = Plan(
            claim=claim(digest),
            delivery=Delivery(task="charge", task_id="2", deferrable=True),
            encode=lambda result: Encoded(payload=str(result).encode()),
            encode_failure=lambda error: str(error).encode(),
            remember=(),
            ignored=(),
            controls=(),
            replaced=lambda: False,
            handed_on=lambda: False,
            emit=lambda _: None,
            patience=30.0,
            waits=True,
            sleep=sleep,
        )
        attempt = TransactionalAttempt(plan, ledger, outer=None, allow_escape=False)
        with pytest.raises(Refusal):
            attempt.run(lambda: "second")
    assert looked == [1, 1]
