"""SHA256SUMS, which `sha256sum --check` reads."""

import hashlib
from pathlib import Path
from typing import Final

CHECKSUMS_FILE: Final = "SHA256SUMS"


def checksums_text(dist: Path) -> str:
    """A line for each file of a release."""
    files = sorted(
        path.relative_to(dist).as_posix()
        for path in dist.rglob("*")
        if path.is_file() and path.name != CHECKSUMS_FILE
    )
    return "".join(f"{_sha256(dist / each)}  {each}\n" for each in files)


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
