"""Programs of others that a release needs, and what git is asked: its time, and what is not committed."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kvtier_common.errors import PermanentError

_INSTALL: Final = {
    "buildah": "Debian and Ubuntu have it as a package; or build the images elsewhere and give --archives",
    "oras": "https://oras.land, or go install oras.land/oras/cmd/oras@v1.3.6",
    "cosign": "https://docs.sigstore.dev, or go install github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3; "
    "or publish without a key",
    "git": "install it",
}
_LAST_LINES: Final = 3
_BESIDE: Final = ("error during command execution:", "Flag --", "WARNING:")
"""How lines begin by which cosign says an error again, or something beside it."""
SOURCE_DATE_EPOCH: Final = "SOURCE_DATE_EPOCH"
"""Seconds since 1970 (reproducible-builds.org)."""
_TIMES_S: Final = range(315_532_800, 2**32)
"""From 1980 on, where a wheel's times begin, to where those of gzip end."""
_DIGITS: Final = 10
_TAKEN: Final = (
    *("operator", "connector", "scorer", "charts", "docs/user-guide/examples"),
    *("CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml", "requirements.lock"),
)


class ReleaseError(PermanentError):
    """The message says in one line what is wrong and what to do."""


def run(
    name: str, *arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Runs a program and returns its standard output; a ReleaseError where it does not end with 0."""
    done = subprocess.run(  # noqa: S603 - our own command
        [program(name), *arguments],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        output = _last_line(done.stderr) or _last_line(done.stdout) or f"status {done.returncode}"
        raise ReleaseError(f"{name} {arguments[0]}: {output}")
    return done.stdout


def program(name: str) -> str:
    """Where a program is."""
    if not (path := shutil.which(name)):
        raise ReleaseError(f"{name} is missing: {_INSTALL[name]}")
    return path


def _last_line(written: str) -> str:
    """The last of what a program wrote, in one line."""
    lines = [line for line in written.strip().splitlines() if not line.startswith(_BESIDE)]
    return " | ".join(lines[-_LAST_LINES:])


def created_s(root: Path) -> int:
    """The variable's time, or that of the last commit."""
    if text := os.environ.get(SOURCE_DATE_EPOCH):
        seconds = int(text) if text.isdecimal() and len(text) <= _DIGITS else 0
        if seconds not in _TIMES_S:
            raise ReleaseError(f"{SOURCE_DATE_EPOCH} is {text!r}: write seconds since 1970, of 1980 or later")
        return seconds
    try:
        return int(run("git", "log", "--max-count=1", "--format=%ct", cwd=root))
    except ReleaseError as error:
        raise ReleaseError(f"{error}; or set {SOURCE_DATE_EPOCH} to seconds since 1970") from error


def timestamp(seconds: int) -> str:
    """As OCI, CycloneDX and OLM write it: 2026-01-31T12:00:00Z."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def uncommitted_files(root: Path) -> list[str]:
    """Paths of files that were changed or are new; none where there is no git to ask, or no clone."""
    try:
        output = run("git", "status", "--porcelain", "-z", "--untracked-files=all", "--", *_TAKEN, cwd=root)
    except ReleaseError:
        return []
    return [entry[3:] for entry in output.split("\0") if entry[2:3] == " "]
