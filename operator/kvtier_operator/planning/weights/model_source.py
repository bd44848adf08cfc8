"""Where an engine finds a model that does not come from the Hub."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kvtier_operator.api.spec.model import ModelSpec
from kvtier_operator.api.spec.model_source import CLAIM, IMAGE, NODE

MODEL_DIR: Final = "/var/lib/kvtier/model"
"""Where the containers see the model's volume."""


class SourceKind(StrEnum):
    """Who brings the weights to the pod."""

    CLAIM = CLAIM
    IMAGE = IMAGE
    NODE = NODE
    FETCHED = ""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model's source.

    Attributes:
        kind: Who brings it.
        place: Name of the claim, reference of the image, folder of the node, or all of the source that the
            fetcher gets.
        folder: Where the model is, as the engine's container sees it.
    """

    kind: SourceKind
    place: str
    folder: str

    @property
    def volume(self) -> Mapping[str, Any] | None:
        """The pod's volume; None where the resource chooses it."""
        match self.kind:
            case SourceKind.CLAIM:
                return {"persistentVolumeClaim": {"claimName": self.place, "readOnly": True}}
            case SourceKind.IMAGE:
                return {"image": {"reference": self.place, "pullPolicy": "IfNotPresent"}}
            case SourceKind.NODE:
                return {"hostPath": {"path": self.place, "type": "Directory"}}
        return None


def model_source(model: ModelSpec) -> ModelSource | None:
    """The source of a model; None for the Hub, and for a folder of the engine's image."""
    source = model.source
    if source is None:
        return None
    kind = next(each for each in SourceKind if source.startswith(each))
    rest = source.removeprefix(kind)
    match kind:
        case SourceKind.CLAIM:
            place, _, path = rest.partition("/")
            return ModelSource(kind, place, _below(path))
        case SourceKind.IMAGE:
            place, _, path = rest.partition("#")
            return ModelSource(kind, place, _below(path))
        case SourceKind.NODE:
            return ModelSource(kind, rest, MODEL_DIR)
    # a volume that resources share has a folder for each of their models, as huggingface_hub's cache has
    return ModelSource(kind, source, _below(f"models--{model.name.replace('/', '--')}"))


def _below(path: str) -> str:
    return f"{MODEL_DIR}/{path}" if path else MODEL_DIR
