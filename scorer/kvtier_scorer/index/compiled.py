"""The scorer's one place that knows numba: a typed decorator for the kernels, and where they are cached.

Why it is not one with the connector's stands in kvtier_connector.core.compiled.
"""

import functools
import hashlib
import inspect
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

import numba  # type: ignore[import-untyped, unused-ignore]

from kvtier_common import tier

P = ParamSpec("P")
R = TypeVar("R")

_FOLDER = Path(__file__).parent
_SHARED = (*_FOLDER.glob("*.py"), Path(tier.__file__))
"""Sources of what kernels of all folders call or count with."""


@functools.cache
def _sources_digest(folder: Path) -> str:
    """A digest of every source of a kernel: numba itself looks only at the file of the outermost one."""
    digest = hashlib.sha256()
    for path in sorted({*_SHARED, *folder.glob("*.py")}):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def _cache_folder(sources: Path) -> Path | None:
    """Where the kernels of a folder of sources are kept; None where nothing can be written to.

    numba would look for another folder itself, but one that changed sources share.
    """
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "kvtier")
    named = [Path(numba.config.CACHE_DIR)] if numba.config.CACHE_DIR else []
    for base in (*named, _FOLDER / "__pycache__", user):
        folder = base / f"kernels-{_sources_digest(sources)}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    return None


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` to machine code at its first call, kept on disk for later processes.

    The code is kept below `NUMBA_CACHE_DIR`, else beside the source, else in the user's cache folder. Where
    none can be written to, every process compiles for itself, which takes seconds: see `load_kernels()`.

    Kernels keep the interpreter's lock. They run for less than a millisecond, and so each is atomic.
    """
    return _compiled(function)


def compiled_beside(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that lets other threads have the interpreter's lock while it runs.

    For one that may run for long, on arrays that nobody else writes to.
    """
    return _compiled(function, nogil=True)


def compiled_part(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only kernels call and that makes no arrays.

    It does not count references to the arrays it gets; its caller holds them. The counting, atomic and at
    every call from part to part, would take most of the time.
    """
    return _compiled(function, _nrt=False)


def _compiled(function: Callable[P, R], **options: bool) -> Callable[P, R]:
    before = numba.config.CACHE_DIR
    folder = _cache_folder(Path(inspect.getfile(function)).parent)
    numba.config.CACHE_DIR = str(folder or "")
    try:
        return cast("Callable[P, R]", numba.njit(cache=folder is not None, **options)(function))
    finally:
        numba.config.CACHE_DIR = before
