"""Orders, and what is paid for them."""
