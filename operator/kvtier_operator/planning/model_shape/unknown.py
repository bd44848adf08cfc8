"""What is said of a model whose shape nothing knows: what its name looks like, and who could tell."""

from typing import Final

from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.model_shape.catalogue import original, similar
from kvtier_operator.planning.model_shape.from_config import has_other_caches

_ADVICE: Final = (
    "put its config.json (or Mistral's params.json) into a ConfigMap and name that in spec.model.configRef, "
    "or set spec.model.geometry (kvtier plan also takes --model-config FILE{hub})"
)
_HUB: Final = ", and --hub where the operator has modelConfigs: hub"
MEASURED: Final = "users of DeepSeek V4 found 187 to 195 KiB with 2 ranks"


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
            "ranks together, many times what its model card has "
            f"({MEASURED}); first to an estimate, and once an engine runs to status.tiers.cpu.bytes / tokens"
        )
        return InvalidInputError("", Problem("spec.model.name", message))
    if name.startswith("/"):
        return InvalidInputError("", _folder(name))
    if "://" in name:
        return InvalidInputError("", _bucket(name))
    also = f"; {missing}" if missing else ""
    advice = _ADVICE.format(hub="" if missing else _HUB)
    message = f"nothing knows the KV geometry of {name!r}{_looks_like(name)}{also}; {advice}"
    return InvalidInputError("", Problem("spec.model.name", message))


def _folder(name: str) -> Problem:
    near = original(name) or next(iter(similar(name)), "ORG/MODEL")
    return Problem(
        "spec.model.name",
        f"nothing knows the KV geometry of folder {name!r}: write the model's id here, such as {near}, and "
        f"file://{name} of the node or pvc://CLAIM/FOLDER into spec.model.source; for a folder of the image, "
        "name a ConfigMap with its config.json in spec.model.configRef",
    )


def _bucket(name: str) -> Problem:
    return Problem(
        "spec.model.configRef",
        f"nothing knows the KV geometry of {name!r}, for kvtier reads no bucket: put its config.json into a "
        "ConfigMap and name that here, beside --load-format runai_streamer in spec.engine.extraArgs "
        "(kvtier plan also takes --model-config FILE)",
    )


def _looks_like(name: str) -> str:
    if base := original(name):
        return (
            f" (by its name a copy of {base}, which the catalogue has, but only its own config.json says "
            "what its cache is kept in)"
        )
    near = similar(name)
    return f" (the catalogue has {' and '.join(near)})" if near else ""
