"""Exit codes, and errors in the use of the command."""

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class UsageError(ValueError):
    """Arguments that cannot be meant; nothing has been computed."""


class InterruptedFitError(Exception):
    """Ctrl-C ended a fit, and the map so far has been written."""
