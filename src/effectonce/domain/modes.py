"""How far a policy acts."""

from enum import StrEnum


class Mode(StrEnum):
    """The setting ``effectonce_mode`` and the option ``mode=``."""

    ENFORCE = "enforce"
    """What the policy says holds."""

    OBSERVE = "observe"
    """Every body runs as if nobody looked; what the policy would have done is written down."""

    OFF = "off"
    """Nothing is asked or written; the face of a body keeps working."""
