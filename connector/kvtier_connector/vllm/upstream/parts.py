"""Refuses a vLLM whose objects lack the inner parts that this package touches."""

from collections.abc import Iterable

from vllm import __version__ as vllm_version

from kvtier_connector.errors import UnsupportedEngineError


def require_parts(owner: object, parts: Iterable[str]) -> None:
    """Refuse an object of vLLM's that lacks some attributes.

    Args:
        owner: The object.
        parts: Names of its attributes.

    Raises:
        UnsupportedEngineError: Names those that it lacks.
    """
    missing = [part for part in parts if not hasattr(owner, part)]
    if missing:
        raise UnsupportedEngineError(
            f"vLLM {vllm_version}: its {type(owner).__name__} has no {' and no '.join(missing)}, which "
            "kvtier's connector needs; install a vLLM that kvtier supports, or a newer kvtier"
        )
