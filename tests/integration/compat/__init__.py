"""The faces of older libraries."""
