"""What works with nothing but the core's own dependencies."""
