"""What the public API looks like to a type checker."""
