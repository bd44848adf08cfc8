"""Refuses a vLLM whose objects lack the inner attributes that this package touches."""

from collections.abc import Iterable

from vllm import __version__ as vllm_version

from kvtier_connector.errors import UnsupportedEngineError


def require_attributes(owner: object, names: Iterable[str]) -> None:
    """Refuse an object of vLLM's that lacks some attributes.

    Args:
        owner: The object.
        names: Of its attributes.

    Raises:
        UnsupportedEngineError: Names those that it lacks.
    """
    missing = [name for name in names if not hasattr(owner, name)]
    if missing:
        raise UnsupportedEngineError(
            f"vLLM {vllm_version}: its {type(owner).__name__} has no {' and no '.join(missing)}, which "
            "kvtier's connector needs; install a vLLM that kvtier supports, or a newer kvtier"
        )
