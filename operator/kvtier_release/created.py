"""When a release was made: its files' times, and so a part of their hashes."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kvtier_release.commands import run
from kvtier_release.errors import ReleaseError

SOURCE_DATE_EPOCH: Final = "SOURCE_DATE_EPOCH"
"""Seconds since 1970 (reproducible-builds.org)."""
_TIMES_S: Final = range(315_532_800, 2**32)
"""From 1980 on, where a wheel's times begin, to where those of gzip end."""
_DIGITS: Final = 10


def created_s(root: Path) -> int:
    """The variable's time, or that of the last commit.

    Raises:
        ReleaseError: The variable is no time that files can have, or there is neither.
    """
    if given := os.environ.get(SOURCE_DATE_EPOCH):
        seconds = int(given) if given.isdecimal() and len(given) <= _DIGITS else 0
        if seconds not in _TIMES_S:
            raise ReleaseError(
                f"{SOURCE_DATE_EPOCH} is {given!r}: write seconds since 1970, of 1980 or later"
            )
        return seconds
    try:
        return int(run("git", "log", "--max-count=1", "--format=%ct", cwd=root))
    except ReleaseError as error:
        raise ReleaseError(f"{error}; or set {SOURCE_DATE_EPOCH} to seconds since 1970") from error


def timestamp(seconds: int) -> str:
    """As OCI, CycloneDX and OLM write it: 2026-01-31T12:00:00Z."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
