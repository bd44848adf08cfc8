"""Where a run keeps its logs, files and volumes, by the XDG base directory specification."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kvtier_operator.errors import RuntimeFailedError

_ENGINE: Final = "engine-{}"
_VOLUMES: Final = "volumes"


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
        state = state_folder()
        state.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=state))
    except OSError as error:
        raise RuntimeFailedError(
            f"cannot make the log folder {error.filename}: {error.strerror}; choose one with --log-dir"
        ) from error


def state_folder() -> Path:
    """Where folders of runs are made; it need not be there."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "kvtier"


def engine_name(number: int) -> str:
    """What an engine of a run is called, and its folder."""
    return _ENGINE.format(number)


def volume_folder(engine_folder: Path, name: str) -> Path:
    """The folder that stands for a volume which is no folder of the machine already."""
    return engine_folder / _VOLUMES / name


def volume_folders(run: Path) -> Iterator[Path]:
    """Those that an earlier run left in the folder of this one."""
    return run.glob(f"{_ENGINE.format('*')}/{_VOLUMES}")
