"""Errors that operator and picker share; whether trying again can help is part of the type."""


class KvtierError(Exception):
    """Anything kvtier refuses or fails to do."""


class PermanentError(KvtierError):
    """Trying again without a change by the user cannot help."""


class RetryableError(KvtierError):
    """The cause lies outside and can go away by itself."""


class MomentaryError(RetryableError):
    """Nothing has to change for the next try to succeed; the other retryable errors wait for somebody."""


class UnreachableError(MomentaryError):
    """No answer: refused, reset, timed out, or something that is not the server's answer."""


class TooLargeError(RetryableError):
    """An answer has more bytes than were asked for: ask for less at a time."""


class MalformedError(ValueError):
    """A text is not of its format, or has more than anybody writes; one line, without where it came from."""
