"""Programs of others that a release needs, and what is said where one is missing or fails."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kvtier_release.errors import ReleaseError

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


def run(
    name: str, *arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Runs a program and returns what it wrote to standard output.

    Args:
        name: A program on the path.
        arguments: What it is given.
        cwd: Folder to run in.
        env: Further environment variables.

    Raises:
        ReleaseError: It is missing or ended with anything but 0.
    """
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
        said = _said(done.stderr) or _said(done.stdout) or f"status {done.returncode}"
        raise ReleaseError(f"{name} {arguments[0]}: {said}")
    return done.stdout


def program(name: str) -> str:
    """Where a program is.

    Raises:
        ReleaseError: It is missing.
    """
    if not (found := shutil.which(name)):
        raise ReleaseError(f"{name} is missing: {_INSTALL[name]}")
    return found


def _said(written: str) -> str:
    """The last of what a program wrote, in one line."""
    lines = [each for each in written.strip().splitlines() if not each.startswith(_BESIDE)]
    return " | ".join(lines[-_LAST_LINES:])
