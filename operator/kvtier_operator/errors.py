"""What is wrong with input, and with what kvtier runs; the kinds of errors are kvtier_common's."""

from dataclasses import dataclass
from typing import Final

from kvtier_common.errors import PermanentError
from kvtier_common.one_line import one_line

_MOST_FIELD: Final = 300
_MOST_MESSAGE: Final = 1500
"""Characters of one problem; of what somebody wrote a message quotes far less."""
_MOST_SOURCE: Final = 300


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with the input."""

    field: str  # path of the field from the resource's root, such as `spec.tiers.cpu.capacity`
    message: str  # what is wrong and what to do, in one line

    def __str__(self) -> str:
        message = one_line(self.message, _MOST_MESSAGE)
        return f"{one_line(self.field, _MOST_FIELD)}: {message}" if self.field else message


class InvalidInputError(PermanentError):
    """The input can never be acted on as it is.

    Attributes:
        source: Where the input came from (a file name, `-`, a resource's name); empty where whoever has the
            resource knows.
        problems: Everything found wrong, at least one.
    """

    def __init__(self, source: str, *problems: Problem) -> None:
        self.source = source
        self.problems = problems
        start = f"{one_line(source, _MOST_SOURCE)}: " if source else ""
        super().__init__("\n".join(f"{start}{problem}" for problem in problems))

    def within(self, source: str) -> "InvalidInputError":
        """The same with the file of the resource that led to it, before what is in it."""
        return InvalidInputError(f"{source}: {self.source}" if self.source else source, *self.problems)


class RuntimeFailedError(PermanentError):
    """A process of a local run could not be started or died; the message has the log's relevant lines."""
