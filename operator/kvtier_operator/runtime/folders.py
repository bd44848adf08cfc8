"""Where a run keeps its logs and files, by the XDG base directory specification."""

import os
import tempfile
from pathlib import Path

from kvtier_operator.errors import RuntimeFailedError


def run_folder(name: str, wanted: Path | None) -> Path:
    """A folder for one run: `wanted`, or a new one under $XDG_STATE_HOME/kvtier (~/.local/state/kvtier).

    Args:
        name: What is run; the new folder's name starts with it.
        wanted: A folder to use instead; made if it is not there.

    Raises:
        RuntimeFailedError: It cannot be made.
    """
    try:
        if wanted is not None:
            wanted.mkdir(parents=True, exist_ok=True)
            return wanted.absolute()
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "kvtier"
        state.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=state))
    except OSError as error:
        raise RuntimeFailedError(
            f"cannot make the log folder {error.filename}: {error.strerror}; choose one with --log-dir"
        ) from error
