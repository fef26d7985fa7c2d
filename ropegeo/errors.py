"""The errors that ropegeo raises on purpose.

Every one of them is a sentence a user can act on: what was asked, what came, what to do. The command line
prints that sentence on one line and exits with status 2.
"""


class RopegeoError(Exception):
    """Base of all errors that ropegeo raises on purpose."""


class InvalidInputError(RopegeoError, ValueError):
    """A value that was passed in is outside what the call accepts."""


class UnsupportedError(RopegeoError):
    """A valid request that this version cannot serve, such as a rope type that it does not know."""


class FileFormatError(RopegeoError):
    """A file that is truncated, foreign, or says something that does not hold."""


class IllDefinedTaskError(RopegeoError, ValueError):
    """A task input without a well-defined path; the message names the position where it breaks."""


class SolverError(RopegeoError):
    """A linear program that its solver ends as infeasible or unbounded, or gives up before it has any answer."""
