"""Errors about a resource, or about a file that it leads to, name the resource's own file."""

from collections.abc import Iterator
from contextlib import contextmanager

from kvtier_operator.errors import InvalidInputError


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Adds the file of a resource to errors that are raised inside.

    Args:
        source: Its file, as `load_resources` says it.

    Raises:
        InvalidInputError: What was raised inside, with the file before it.
    """
    try:
        yield
    except InvalidInputError as error:
        raise error.within(source) from error
