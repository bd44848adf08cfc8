"""What is wrong with a body."""

from kvtier_scorer.errors import BadRequestError


class BadFieldError(BadRequestError):
    """A field is missing or of a wrong type.

    Attributes:
        field: Its path, such as `messages[2].content`.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
