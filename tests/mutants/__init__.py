"""Ways to break the guard, each of which the tests must notice: `just mutants`."""
