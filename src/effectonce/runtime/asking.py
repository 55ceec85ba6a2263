"""How an attempt asks for its claim."""

from effectonce.domain.claims import Claim, Granted, Refused
from effectonce.errors import LedgerUnavailable, SchemaMissing
from effectonce.ports import LedgerStore


def ask_for_claim(store: LedgerStore, claim: Claim) -> Granted | Refused:
    """Claim; ask once more when no answer came, since a claim unknown to its holder keeps the key for a lease.

    The store answers a second asking of this attempt as the first. The lease began with the first one, and trust in it
    counts from there (``tests/networks/test_silence.py``).
    """
    try:
        return store.claim(claim)
    except SchemaMissing:
        raise
    except LedgerUnavailable:
        return store.claim(claim)
