"""The steps, one a file; see the package above."""
