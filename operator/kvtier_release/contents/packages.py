"""Wheel and source distribution, by the locked build backend."""

import sys
from pathlib import Path

from kvtier_release.commands import run
from kvtier_release.created import SOURCE_DATE_EPOCH


def build_packages(root: Path, dist: Path, seconds: int) -> None:
    """Builds both into a folder; the same sources and time make the same bytes.

    Raises:
        ReleaseError: The backend failed.
    """
    arguments = ("-m", "hatchling", "build", "--target", "sdist", "--target", "wheel", "--directory", dist)
    run(sys.executable, *arguments, cwd=root, env={SOURCE_DATE_EPOCH: str(seconds)})
