"""What is said of a model whose shape nothing knows: what its name looks like, and who could tell."""

from typing import Final

from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.model_shape.catalogue import original, similar
from kvtier_operator.planning.model_shape.from_config import has_other_caches

_ADVICE: Final = (
    "put its config.json into a ConfigMap and name that in spec.model.configRef, or set spec.model.geometry "
    "(kvtier plan also takes --model-config FILE, and --hub where the operator has modelConfigs: hub)"
)


def unknown_model(name: str, missing: str) -> InvalidInputError:
    """The refusal of such a model.

    Args:
        name: As `spec.model.name` has it.
        missing: Why its configuration could not be had, where it was looked for; empty otherwise.
    """
    if has_other_caches(name):
        message = (
            f"layers of {name} keep caches of different shapes, which kvtier cannot size, not even by its "
            "config.json: set spec.model.geometry.kvBytesPerToken to what a tier stores of a token, all "
            "ranks together, many times what its model card has; first to an estimate, and once an engine "
            "runs to status.tiers.cpu.bytes / tokens"
        )
        return InvalidInputError("", Problem("spec.model.name", message))
    also = f"; {missing}" if missing else ""
    message = f"nothing knows the KV geometry of {name!r}{_looks_like(name)}{also}; {_ADVICE}"
    return InvalidInputError("", Problem("spec.model.name", message))


def _looks_like(name: str) -> str:
    if (base := original(name)) and not name.startswith("/"):
        return (
            f" (by its name a copy of {base}, which the catalogue has, but only its own config.json says "
            "what its cache is kept in)"
        )
    near = similar(name)
    known = f" (the catalogue has {' and '.join(near)})" if near else ""
    if name.startswith("/"):
        return (
            f"{known}, a folder: name the model by its id, and give the folder in spec.model.source, as "
            f"file://{name} of the node or pvc://CLAIM/FOLDER"
        )
    return known
