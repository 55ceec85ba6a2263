"""A reusable app: it sends receipts for whatever project installs it."""
