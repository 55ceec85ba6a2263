"""Steps with real workers, a payment server outside, and kill -9."""
