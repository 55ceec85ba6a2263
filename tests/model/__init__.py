"""Every interleaving of the protocol, walked through: an explicit-state model of claims, deliveries and brokers."""
