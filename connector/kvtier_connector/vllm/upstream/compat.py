"""Refuses a vLLM that this package was not written against; and our logger, below vLLM's."""

import logging
from collections.abc import Iterable
from typing import Final

from vllm import __version__ as installed_version

from kvtier_connector.errors import UnsupportedEngineError
from kvtier_connector.supported import TESTED_RELEASES, minor_of

log: Final = logging.getLogger("vllm.kvtier")  # vLLM configures handlers for its own name only


def require_supported_vllm(version: str = installed_version) -> None:
    """Refuse any vLLM but those whose interfaces this package was written against.

    Raises UnsupportedEngineError: names the version found and those that are supported.
    """
    if minor_of(version) not in TESTED_RELEASES:
        raise UnsupportedEngineError(
            f"vLLM {version} is not supported by kvtier's connector; install one of "
            + ", ".join(f"{minor}.x" for minor in TESTED_RELEASES)
        )


def require_attributes(owner: object, names: Iterable[str]) -> None:
    """Refuse an object of vLLM's that lacks some attributes (UnsupportedEngineError), which are named."""
    missing = [name for name in names if not hasattr(owner, name)]
    if missing:
        raise UnsupportedEngineError(
            f"vLLM {installed_version}: its {type(owner).__name__} has no {' and no '.join(missing)}, which "
            "kvtier's connector needs; install a vLLM that kvtier supports, or a newer kvtier"
        )
