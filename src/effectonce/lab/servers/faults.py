"""What can be wrong with a server of our own."""


class ServiceMissing(Exception):
    """A server cannot be had here; the text says what to install or which variable to set."""


class ServiceFailed(Exception):
    """A server that is installed did not start or did not answer; the text ends with its log."""
