"""Faults at the questions that a leased attempt asks its ledger."""

from effectonce.lab.proxy import Fault, Rule
from tests.networks.conftest import Market

LEDGERS = ["redis+postgresql", "redis+redis"]
STATEMENTS = {
    "claim": rb"insert into .{0,40}effectonce_entries",
    "complete": rb"set state = .{1,12}, flags = ",
    "release": rb"deaths = case when",
    "renew": rb"set lease_until = ",
}


def strike(market: Market, question: str, fault: Fault, *, times: float = 1) -> Rule:
    """Let *fault* strike the next such questions, where they are committed."""
    if market.pair.endswith("postgresql"):
        return market.ledger.when(b"COMMIT", fault, after=STATEMENTS[question], times=times)
    script = getattr(market.once.ledger._scripts, question)
    script.registered_client.script_load(script.script)  # or its first asking is answered by NOSCRIPT
    return market.ledger.when(script.sha.encode(), fault, times=times)
