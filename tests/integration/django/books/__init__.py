"""An app of a project: what bodies write."""
