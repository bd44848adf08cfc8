"""LMCache for the benchmark alone: in a folder of the user's cache, no dependency of this project."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from kvtier_connector.errors import ConnectorError

_VERSION: Final = "0.5.6"
_PACKAGES: Final = (
    f"lmcache=={_VERSION}",
    "aiofile==3.12.3",
    "caio==0.12.10",
    *("aiofiles==25.1.0", "awscrt==0.38.1", "nvtx==0.2.17", "redis==8.1.0"),  # of its server
)
"""Without what they depend on: PyTorch is the engine's, and the CUDA packages are never reached on a CPU."""
_DONE: Final = "kvtier-complete"


class LMCacheMissingError(ConnectorError):
    """LMCache cannot be installed here."""


def lmcache_environment() -> dict[str, str]:
    """Return environment variables by which a process of ours finds LMCache, installed first if need be.

    Raises:
        LMCacheMissingError: it is not installed, and cannot be.
    """
    folder = _folder()
    if not installed():
        _install(folder)
        (folder / _DONE).touch()
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PYTHONPATH": os.pathsep.join(paths),
        "LMCACHE_TRACK_USAGE": "false",
        "LMCACHE_LOG_LEVEL": "WARNING",
        "PYTHONHASHSEED": "0",
    }


def installed() -> bool:
    """Tell whether it is there already."""
    return (_folder() / _DONE).exists()


def _folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return cache / "kvtier" / "bench" / f"lmcache-{_VERSION}-python{python}"


def _install(folder: Path) -> None:
    if importlib.util.find_spec("uv"):
        tool = ["uv", "pip", "install", "--python", sys.executable]
    else:
        tool = ["pip", "install"]
    command = [sys.executable, "-m", *tool, "--quiet", "--no-deps", "--target", str(folder), *_PACKAGES]
    result = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - a list
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise LMCacheMissingError(
            f"LMCache {_VERSION} cannot be installed in {folder}, so its figures are left out: {last}"
        )
