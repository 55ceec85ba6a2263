"""What the ledger in Redis does beyond the rules of all ledgers."""
