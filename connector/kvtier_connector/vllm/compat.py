"""Which vLLM this connector is written against: its offloading interfaces change with nearly every minor."""

from typing import Final

from vllm import __version__ as installed_version

from kvtier_connector.errors import UnsupportedEngineError

SUPPORTED_MINORS: Final = ("0.32", "0.33")


def require_supported_vllm(version: str = installed_version) -> None:
    """Refuse any vLLM but those whose interfaces this package was written against.

    Raises:
        UnsupportedEngineError: names the version found and those that are supported.
    """
    minor = ".".join(version.split(".")[:2])
    if minor not in SUPPORTED_MINORS:
        raise UnsupportedEngineError(
            f"vLLM {version} is not supported by kvtier's connector; install one of "
            + ", ".join(f"{supported}.x" for supported in SUPPORTED_MINORS)
        )
