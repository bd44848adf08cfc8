"""The files of a tier under test, and what opens them."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.unit.connector.disk.rig.blocks import MEANING

from kvtier_connector.core.disk.files.folder import Directory
from kvtier_connector.core.disk.files.journal import Entries, Journal, Recovered, Shape


def segment(path: Path) -> Path:
    return path / MEANING.folder / "blocks-000000"


def journal(path: Path) -> Path:
    return path / MEANING.folder / "index"


def flip(path: Path, place: int) -> None:
    """Change a bit of a file."""
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 0x10]))


@contextmanager
def directory(path: Path) -> Iterator[Directory]:
    """A folder as the tier has it."""
    found = Directory.open(path)
    try:
        yield found
    finally:
        found.close()


def open_journal(path: Path, shape: Shape) -> tuple[Journal, Recovered]:
    """Open the journal of the folder that `path` is in."""
    with directory(path.parent) as folder:
        return Journal.open(folder, shape)


def write_journal(path: Path, shape: Shape, snapshot: Iterable[Entries] = ()) -> Journal:
    """Write a journal in place of that of the folder that `path` is in."""
    with directory(path.parent) as folder:
        return Journal.create(folder, shape, snapshot)


def copied(path: Path, name: str) -> Path:
    copy = path.with_name(name)
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path, copy)
    return copy
