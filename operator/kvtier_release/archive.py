"""Archives whose bytes follow from their content alone: sorted, owned by nobody, one time for all."""

import gzip
import io
import tarfile
from collections.abc import Mapping
from typing import Final

_MODE: Final = 0o644


def tar(files: Mapping[str, bytes], seconds: int) -> bytes:
    """A tar archive.

    Args:
        files: Content by path; folders are made by whoever unpacks.
        seconds: Time of every file, since 1970.
    """
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(content), _MODE, seconds
            archive.addfile(entry, io.BytesIO(content))
    return sink.getvalue()


def tar_gz(files: Mapping[str, bytes], seconds: int) -> bytes:
    """The same, compressed."""
    return gzip.compress(tar(files, seconds), mtime=seconds)
