"""What is wrong with a resource, or with a file that it leads to, is said with the resource's own file."""

from collections.abc import Iterator
from contextlib import contextmanager

from kvtier_operator.errors import InvalidInputError


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Adds where a resource came from to whatever is refused inside.

    Args:
        source: Its file, as `load_resources` says it.

    Raises:
        InvalidInputError: What was raised inside, with the file before it.
    """
    try:
        yield
    except InvalidInputError as error:
        raise error.within(source) from error
