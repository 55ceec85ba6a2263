"""A ledger that is opened before a process forks, as under the prefork pool."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, sys
from effectonce.stores.redis.ledger import RedisLedger
from effectonce.testing.conformance.scene import DONE, entry_of, granted, new_claim

ledger = RedisLedger.open(sys.argv[1])
shared = granted(ledger, new_claim())
children = []
for _ in range(3):
    if not (child := os.fork()):
        children.clear()
        break
    children.append(child)

for number in range(200):
    claim = new_claim(key=f"{os.getpid()}:{number}")
    held = granted(ledger, claim)
    assert held.attempt == claim.attempt
    assert ledger.complete(held, DONE)
    assert entry_of(ledger, held).key == claim.key
assert entry_of(ledger, shared).fence == shared.fence
sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))
"""


def test_processes_that_forked_do_not_read_each_others_answers(redis_url: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, program, redis_url], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
