"""What Django's own book of migrations knows of the ledger."""
