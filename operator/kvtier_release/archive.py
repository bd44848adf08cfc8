"""Archives whose bytes follow from their content alone: sorted, owned by nobody, one time for all."""

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

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
            _add(archive, name, io.BytesIO(content), len(content), seconds)
    return sink.getvalue()


def tar_gz(files: Mapping[str, bytes], seconds: int) -> bytes:
    """The same, compressed."""
    return gzip.compress(tar(files, seconds), mtime=seconds)


def copy_tar(source: Path, target: Path, seconds: int) -> None:
    """Copies the files of a tar archive that others made; they may have gigabytes.

    Args:
        source: The archive.
        target: Where the copy goes.
        seconds: Time of every file, since 1970.
    """
    with tarfile.open(source) as opened, tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for member in sorted(opened.getmembers(), key=lambda each: each.name):
            if content := opened.extractfile(member):
                _add(archive, member.name, content, member.size, seconds)


def _add(archive: tarfile.TarFile, name: str, content: IO[bytes], size_bytes: int, seconds: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size_bytes, _MODE, seconds
    archive.addfile(entry, content)
