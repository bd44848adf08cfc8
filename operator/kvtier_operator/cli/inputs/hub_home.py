"""What Hugging Face's tools keep on this machine: downloads and a person's token, where their variables say.

Source of the places and of what goes first: huggingface_hub, constants.py, utils/_auth.py and
file_download.py (try_to_load_from_cache).
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from kvtier_operator.planning.model_shape.config.model_files import FILES

_TRUE: Final = frozenset({"1", "ON", "YES", "TRUE"})
_MOST_TOKEN_BYTES: Final = 4096
TOKEN: Final = "HF_TOKEN"  # noqa: S105 - the variable that has it


def is_offline() -> bool:
    """Whether nobody is to be asked."""
    return _is_on("HF_HUB_OFFLINE") or _is_on("TRANSFORMERS_OFFLINE")


def token() -> str:
    """The token of whoever runs this; empty where there is none, or it is only sent when asked to."""
    if _is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN"):
        return ""
    named = os.environ.get(TOKEN) or os.environ.get("HUGGING_FACE_HUB_TOKEN") or ""
    return "".join(named.split()) or _token_in_file()


def cached_files(name: str, revision: str | None) -> Iterator[tuple[str, Path]]:
    """Names and places of a model's files that decide its shape, of those that were downloaded before."""
    folder = _place("HF_HUB_CACHE", _home() / "hub") / f"models--{name.replace('/', '--')}"
    commit = revision or "main"
    with suppress(OSError, ValueError):  # a commit itself, or not there
        commit = (folder / "refs" / commit).read_text(encoding="ascii").strip()
    for file in FILES:
        path = folder / "snapshots" / commit / file
        if path.is_file():
            yield file, path


def _token_in_file() -> str:
    try:
        with _place("HF_TOKEN_PATH", _home() / "token").open(encoding="ascii") as file:
            return "".join(file.read(_MOST_TOKEN_BYTES).split())
    except (OSError, ValueError):
        return ""


def _home() -> Path:
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    return _place("HF_HOME", caches / "huggingface")


def _place(variable: str, otherwise: Path) -> Path:
    return Path(os.path.expandvars(os.environ.get(variable) or otherwise)).expanduser()


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").upper() in _TRUE
