"""Refuses a vLLM that this package was not written against."""

from vllm import __version__ as installed_version

from kvtier_connector.errors import UnsupportedEngineError
from kvtier_connector.supported import TESTED_RELEASES, minor_of


def require_supported_vllm(version: str = installed_version) -> None:
    """Refuse any vLLM but those whose interfaces this package was written against.

    Raises:
        UnsupportedEngineError: Names the version found and those that are supported.
    """
    if minor_of(version) not in TESTED_RELEASES:
        raise UnsupportedEngineError(
            f"vLLM {version} is not supported by kvtier's connector; install one of "
            + ", ".join(f"{minor}.x" for minor in TESTED_RELEASES)
        )
