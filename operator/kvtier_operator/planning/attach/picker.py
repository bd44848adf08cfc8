"""A configuration for the endpoint picker of others, with the capacities of the tiers that its pods have."""

import re
from typing import Any, Final

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import KVCacheTier, Spec
from kvtier_operator.api.spec.router import SUPPORTED_VERSIONS, RouterSpec, flavor_of
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.attach.plan import attached_tiers
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.observed import EngineTokens, Observed
from kvtier_operator.planning.tiers.capacity import picker_tokens
from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.model import PickerConfig, PickerInput, ScorerWeights, TierTokens

_KEY: Final = "epp"
"""Where KServe looks, if its service names no other (v0.20.0, llmisvc/config_merge.go)."""
PUBLISHED_VERSION: Final = "0.10"
"""What the operator writes for: llm-d's, of which KServe 0.20 has 0.9, and reads the same."""
_USUAL_BLOCK_TOKENS: Final = 16
_NEEDED: Final = frozenset({Tier.GPU, Tier.CPU})


def known_picker_version(text: str) -> str:
    """The version that kvtier knows a picker by: 0.9 of 0.9 and of a release's tag, v0.9.1.

    Raises:
        InvalidInputError: There is none.
    """
    version = next((known for known in SUPPORTED_VERSIONS if _is_release(text, known)), None)
    if version is None:
        message = f"{text!r} is not known: pickers are {', '.join(SUPPORTED_VERSIONS)}"
        raise InvalidInputError("--picker-version", Problem("", message))
    return version


def _is_release(text: str, minor: str) -> bool:
    return bool(re.fullmatch(rf"v?{re.escape(minor)}(\.\d+)?(-.+)?", text))


def others_picker_config(resource: KVCacheTier, observed: Observed, version: str) -> dict[str, Any]:
    """A ConfigMap with an EndpointPickerConfig, for engine pods of one rank in the model's own dtype.

    Args:
        resource: One with `spec.attach` and a model.
        observed: Where the model's configuration is.
        version: Of their picker, of SUPPORTED_VERSIONS.

    Raises:
        InvalidInputError: It names no model, or its KV geometry cannot be had.
    """
    planned = others_picker(resource, observed, version)
    if planned is None:
        message = "is required for a picker's configuration: tokens are counted by the model's KV cache"
        raise InvalidInputError("", Problem("spec.model", message))
    names = Names.of_resource(resource)
    return _config_map({"name": names.picker, "namespace": names.namespace}, planned)


def published_picker_config(resource: KVCacheTier, planned: PickerConfig) -> dict[str, Any]:
    """The same as an object that the operator keeps."""
    names = Names.of_resource(resource)
    return _config_map(names.metadata(names.picker, Component.PICKER), planned)


def others_picker(resource: KVCacheTier, observed: Observed, version: str) -> PickerConfig | None:
    """What a picker should know: as the engines say, else as planned; None where nothing tells it yet.

    Raises:
        InvalidInputError: The KV geometry of the model that it names cannot be had.
    """
    router = RouterSpec(flavor=flavor_of(version), version=version)
    spec = resource.planned_spec
    geometry = resolve_geometry(spec, observed) if spec.served_model else None
    tokens = _engine_tokens(observed.engine) or (_planned_tokens(spec, geometry) if geometry else None)
    if tokens is None:
        return None
    planned_block = geometry.block_tokens if geometry else _USUAL_BLOCK_TOKENS
    return picker_config(
        router.flavor,
        PickerInput(
            weights=ScorerWeights(router.weights.by_scorer()),
            tokens=tokens,
            engine_block_tokens=(observed.engine.block if observed.engine else None) or planned_block,
            max_prefix_tokens=geometry.longest_tokens(spec.engine) if geometry else None,
            version=version,
        ),
    )


def _engine_tokens(engine: EngineTokens | None) -> TierTokens | None:
    """What an engine says its own tiers hold."""
    if engine is None or not engine.by_tier.keys() >= _NEEDED:
        return None
    return TierTokens({tier: tokens for tier, tokens in engine.by_tier.items() if not tier.shared})


def _planned_tokens(spec: Spec, geometry: Geometry) -> TierTokens:
    by_tier = attached_tiers(spec, geometry).by_tier
    planned = {name: picker_tokens(tier) for name, tier in by_tier.items() if not name.shared}
    return TierTokens({Tier.GPU: None, **planned})


def _config_map(metadata: dict[str, Any], planned: PickerConfig) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_KEY: planned.text}}
