"""What containerd made of images, kept for the next node: to unpack a gigabyte takes it half a minute."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

from tests.cluster.harness.programs.locked import lock
from tests.cluster.harness.programs.tools import cache_folder

_DATABASES: Final = "io.containerd.*/*.db"
"""What containerd changes in place; all other files it writes once, under names of their own."""


@contextmanager
def image_store(images: Sequence[Path]) -> Iterator[Path]:
    """The folder for a root of containerd's with these images; it is there if one was kept.

    Nobody else makes or removes it meanwhile. Roots with other images go.

    Args:
        images: Archives, whose names change with what is in them.
    """
    stores = cache_folder() / "images" / "unpacked"
    stores.mkdir(parents=True, exist_ok=True)
    identity = sha256("\0".join(f"{image.parent.name}/{image.name}" for image in images).encode())
    store = stores / identity.hexdigest()[:12]
    with lock(stores.parent / ".unpacked.lock"):
        for other in set(stores.iterdir()) - {store}:
            shutil.rmtree(other)
        yield store


def copy_root(source: Path, target: Path) -> None:
    """Copies a root that no containerd uses: both have the same files, but each its own databases."""
    building = target.with_name(f".{target.name}.new")
    if _failure("--link", source, building):  # another file system
        shutil.rmtree(building, ignore_errors=True)
        if reason := _failure("--reflink=auto", source, building):
            raise OSError(f"{source} cannot be copied: {reason}")
    for database in source.glob(_DATABASES):
        own = building / database.relative_to(source)
        own.unlink()
        shutil.copy2(database, own)
    building.rename(target)


def _failure(how: str, source: Path, target: Path) -> str:
    """Copies; returns what went wrong, or nothing."""
    command = ["cp", "--archive", how, str(source), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    return (done.stderr.strip() or f"status {done.returncode}") if done.returncode else ""
