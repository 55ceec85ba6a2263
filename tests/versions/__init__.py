"""The versions that are promised: `just versions`.

The wheel is built and installed into throw-away environments, with the lowest versions that `pyproject.toml` allows and
with the newest there are, on each Python that this machine has. A part of the tests runs there against the wheel, not
against the sources. What was seen stands in `docs/reference/versions.md`.
"""
