"""Frameworks whose database connections carry the ledger, one package each."""
