"""Kill -9 at every crash point, with real workers, brokers and ledgers."""
