"""Of the tables."""
