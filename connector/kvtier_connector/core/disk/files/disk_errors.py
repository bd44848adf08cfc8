"""What the operating system says of a file, said as the disk tier's own error."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kvtier_connector.errors import DiskError


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn every OSError into a DiskError that names `path`."""
    try:
        yield
    except OSError as error:
        raise DiskError(f"{path}: {error.strerror or error}") from error
