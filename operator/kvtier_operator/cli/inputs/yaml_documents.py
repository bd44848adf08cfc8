"""Documents of a file that the user names."""

from collections.abc import Iterator

from kvtier_common.errors import MalformedError
from kvtier_common.formats.yaml_text import read_yaml
from kvtier_operator.errors import InvalidInputError, Problem


def read_documents(text: str | bytes, source: str) -> Iterator[object]:
    """The documents of a YAML or JSON stream, empty ones left out, as plain Python values that JSON has too.

    Raises:
        InvalidInputError: The stream is not YAML; the message has line and column.
    """
    try:
        yield from read_yaml(text)
    except MalformedError as error:
        raise InvalidInputError(source, Problem("", f"not YAML: {error}")) from error
