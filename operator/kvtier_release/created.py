"""When a release was made: its files' times, and so a part of their hashes."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kvtier_release.commands import run
from kvtier_release.errors import ReleaseError

SOURCE_DATE_EPOCH: Final = "SOURCE_DATE_EPOCH"
"""Seconds since 1970 (reproducible-builds.org)."""


def created_s(root: Path) -> int:
    """The variable's time, or that of the last commit.

    Raises:
        ReleaseError: The variable is no number, or there is neither.
    """
    if given := os.environ.get(SOURCE_DATE_EPOCH):
        if not given.isdecimal():
            raise ReleaseError(f"{SOURCE_DATE_EPOCH} is {given!r}: write seconds since 1970")
        return int(given)
    return int(run("git", "log", "--max-count=1", "--format=%ct", cwd=root))


def timestamp(seconds: int) -> str:
    """As OCI, CycloneDX and OLM write it: 2026-01-31T12:00:00Z."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
