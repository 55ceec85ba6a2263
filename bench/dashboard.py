"""How long each page of the dashboard takes, over a ledger of a million entries on PostgreSQL.

The server is the tests' own; the client calls the application in this process, so no network is in it. Each page is
asked for once before it is measured. On a machine that others use too the median is theirs as well: the best of the
turns, this process's own time and the number of statements tell what the page itself costs.
"""

import json
import platform
import time
from pathlib import Path
from statistics import median

import sqlalchemy as sa
from celery import Celery
from starlette.testclient import TestClient

from effectonce import EffectOnce
from effectonce.web import dashboard
from tests.services import Fleet

ENTRIES, HISTORY, TIMES = 1_000_000, 100_000, 31
RESULTS = Path(__file__).with_name("results") / "dashboard.json"
FILL = """
insert into effectonce_entries (fence, since, lease_until, lease_ms, keep_until, state, flags, deaths, attempts,
  retries, digest, identity, attempt, fingerprint, task_id, key)
select n, 1790000000000000 + n, 0, 60000, 1890000000000000,
  case when n % 100000 = 7 then 5 when n % 50000 = 3 then 1 else 2 end, 0, 0, 1, 0, decode(md5(n::text), 'hex'),
  decode(md5(n::text), 'hex'), decode(substr(md5(n::text), 1, 16), 'hex'), decode('00', 'hex'), '', 'pay:' || n
from generate_series(1, :number) n
"""
FILL_HISTORY = """
insert into effectonce_history (at, fence, times, digest, name, cause, task, task_id, attempt, facts)
select 1790000000000000 + n, n, 1, decode(md5((n * 7)::text), 'hex'), 'effect.replayed', 'caller', '', '', '', '{}'
from generate_series(1, :number) n
"""


def main(words: list[str]) -> None:
    """Fill, ask, print, and keep the figures."""
    fleet = Fleet()
    server = fleet.postgresql()
    url = str(server.fresh_url())
    app = Celery("dashboard", broker="memory://", backend="cache+memory://", set_as_current=False)
    once = EffectOnce(app, ledger=url)
    once.ledger.create_schema()
    engine = once.ledger.source.engine  # type: ignore[attr-defined]
    with engine.begin() as connection:
        connection.execute(sa.text(FILL), {"number": ENTRIES})
        connection.execute(sa.text(FILL_HISTORY), {"number": HISTORY})
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("vacuum analyze")
    digest = once.ledger.entries(state=None, limit=1)[0].digest.hex()
    client = TestClient(dashboard(once))
    pages = [
        "/",
        "/entries",
        "/entries?state=unknown",
        "/entries?state=failed",
        "/entries?q=99999",
        f"/entries/{digest}",
    ]
    asked: list[str] = []
    sa.event.listen(engine, "before_cursor_execute", lambda _connection, _cursor, said, *_: asked.append(said))
    found = {page.replace(digest, "DIGEST"): _taken(client, page, asked) for page in [*pages, "/outbox", "/ticks"]}
    for page, taken in found.items():
        print(f"{page:<26}", "  ".join(f"{name} {figure}" for name, figure in taken.items()))
    RESULTS.write_text(
        json.dumps({"entries": ENTRIES, "machine": platform.platform(), "pages": found}, indent=2) + "\n"
    )
    once.ledger.close()
    server.put_back(url)
    fleet.close()


def _taken(client: TestClient, page: str, asked: list[str]) -> dict[str, float]:
    """Milliseconds of the clock, at best and in the middle, and of this process; statements."""
    taken, own = [], []
    client.get(page)
    for _ in range(TIMES):
        asked.clear()
        began, mine = time.perf_counter(), time.process_time()
        client.get(page).raise_for_status()
        taken.append((time.perf_counter() - began) * 1000)
        own.append((time.process_time() - mine) * 1000)
    return {
        "best_ms": round(min(taken), 1),
        "median_ms": round(median(taken), 1),
        "own_ms": round(median(own), 1),
        "statements": len(asked),
    }


if __name__ == "__main__":
    main([])
