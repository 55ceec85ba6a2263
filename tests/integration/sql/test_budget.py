"""What the guard may cost in things that can be counted: Python calls, statements, modules, bytes.

Seconds depend on the machine and on who else uses it; counts do not. The figures in seconds are in
``docs/explanation/performance.md``.
"""

import secrets
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from effectonce.domain.claims import Granted
from effectonce.domain.leases import Lease
from effectonce.events import Event
from effectonce.ports import Renewal
from effectonce.runtime.keeper import Keeper
from effectonce.stores.memory import MemoryLedger
from effectonce.stores.sql.ledger import SqlLedger
from tests.integration.sql.budget import Budget
from tests.integration.sql.wire import tapped

MANY = 10_000


@pytest.fixture
def budget(tmp_path: Path) -> Iterator[Budget]:
    """Tasks on a ledger in a file."""
    budget = Budget(f"sqlite:///{tmp_path / 'budget.sqlite'}")
    yield budget
    budget.close()


def test_the_guard_of_a_transaction_calls_few_functions_of_python(budget: Budget) -> None:
    """Beside those that the same statements cost without it; about 0.2 microseconds each."""
    assert budget.calls("guarded") - budget.calls("twin") <= 310


def test_the_guard_of_a_lease_calls_few_functions_of_python(budget: Budget) -> None:
    """The two short transactions of claim and settlement included."""
    assert budget.calls("leased") - budget.calls("empty") <= 845


def test_the_library_loads_itself_when_it_is_used() -> None:
    """A task module may name it and pay nothing until a worker runs."""
    assert _loaded("import effectonce") == {"effectonce"}


def test_importing_the_face_loads_no_store_and_no_extra() -> None:
    loaded = _loaded("from effectonce import EffectOnce, Leased, Transactional")
    assert len({name for name in loaded if name.startswith("effectonce")}) <= 110
    others = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names
    assert others <= {"effectonce", "celery", "kombu", "billiard", "amqp", "vine"}


def test_a_claim_that_is_held_costs_less_than_two_kilobytes() -> None:
    store = MemoryLedger()
    keeper = Keeper(lambda: store, emit=_unheard)
    lease = Lease.asked(time.monotonic(), length=3600.0)
    with ExitStack() as held:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for granted in _claims(1000):
            held.enter_context(keeper.holding(granted, lease=lease, key=f"charge:{granted.digest.hex()}"))
        taken = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    assert 0 < taken < 1000 * 2048


def test_all_claims_that_are_held_are_renewed_by_one_call_a_tick() -> None:
    asked: list[int] = []

    class Store(MemoryLedger):
        def renew(self, held: Sequence[Renewal]) -> frozenset[bytes]:
            asked.append(len(held))
            return frozenset(each.attempt for each in held)

    now = [1000.0]
    keeper = Keeper(Store, emit=_unheard, clock=lambda: now[0])
    with ExitStack() as held:
        for granted in _claims(MANY):
            held.enter_context(keeper.holding(granted, lease=Lease.asked(now[0], length=30.0), key="k"))
        now[0] += 20.0
        keeper.renew()
    assert set(asked) == {MANY}


@pytest.mark.parametrize("kind", ["postgresql"])
def test_a_renewal_of_ten_thousand_is_one_statement(kind: str, request: pytest.FixtureRequest) -> None:
    ledger = SqlLedger.open(request.getfixturevalue(f"{kind}_url"), create_schema=True)
    held = [Renewal(digest=each.digest, attempt=each.attempt, fence=each.fence, lease=30.0) for each in _claims(MANY)]
    ledger.ping()
    with tapped(ledger.source.engine) as wire:
        assert ledger.renew(held) == frozenset()
    ledger.close()
    assert wire.verbs == ["begin", "update", "commit"]


def _claims(number: int) -> list[Granted]:
    return [
        Granted(
            digest=secrets.token_bytes(16),
            attempt=secrets.token_bytes(8),
            fence=nth,
            takeover=False,
            deaths=0,
            attempts=1,
        )
        for nth in range(number)
    ]


def _unheard(_event: Event) -> None:
    """Nothing happens to these claims."""


def _loaded(words: str) -> set[str]:
    """The modules that *words* load in a process that has Celery."""
    code = (
        f"import sys\nfrom celery import Celery\nbefore = set(sys.modules)\n{words}\nprint(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())
