"""What a folder takes on the disk."""

from pathlib import Path


def taken_bytes(folder: Path) -> int:
    """Return what a folder and all in it take, also while files in it are written anew."""
    while True:
        try:
            return sum(path.lstat().st_blocks * 512 for path in (folder, *folder.rglob("*")))
        except FileNotFoundError:  # one got another's name after it was listed: look again
            if not folder.exists():
                raise
