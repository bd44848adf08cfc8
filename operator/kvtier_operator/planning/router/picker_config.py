"""The endpoint picker: its configuration, whose LRU capacities follow from the tiers."""

import hashlib
from dataclasses import replace
from typing import Final

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.arguments.engine_tls import serves_tls
from kvtier_operator.planning.kv_cache.geometry import Geometry
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.images.image_source import ImageSource
from kvtier_operator.planning.router.gateway import plan_gateway
from kvtier_operator.planning.router.picker_resources import plan_picker_resources
from kvtier_operator.planning.router.router_plan import RouterPlan
from kvtier_operator.planning.tiers.observed_tiers import picker_tokens
from kvtier_operator.planning.tiers.tier_plan import TiersPlan
from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.model import (
    PickerConfig,
    PickerConfigError,
    PickerInput,
    ScorerWeights,
    TierTokens,
    UnsupportedVersionError,
)

LOCAL_FLAVOR: Final = Flavor.BUILTIN
"""The picker of a run on one machine."""


def plan_router(
    resource: KVCacheTier, geometry: Geometry, tiers: TiersPlan, images: ImageSource
) -> RouterPlan:
    """The picker's configuration, image and LRU capacities.

    Args:
        resource: What is wanted.
        geometry: KV geometry of the model.
        tiers: The tiers in tokens.
        images: Where images come from.

    Raises:
        InvalidInputError: The flavour's version is not supported, or the weights leave no scorer.
    """
    router = resource.spec.router
    given = _given(resource, geometry, tiers)
    gateway = plan_gateway(resource, images, given.bodies)
    config = _config(resource, replace(given, uploads_bytes=gateway.uploads_bytes) if gateway else given)
    return RouterPlan(
        flavor=router.flavor,
        version=config.version,
        image=router.image or images.picker(router.flavor, config.version, tested=router.version is None),
        tokens_per_entry=config.tokens_per_entry,
        entries=config.entries,
        gpu_from_metrics=config.gpu_from_metrics,
        config=config.text,
        config_hash=hashlib.sha256(config.text.encode()).hexdigest()[:16],
        resources=plan_picker_resources(resource.spec, config.entries, given.bodies),
        unread=config.unread,
        gateway=gateway,
    )


def router_warnings(resource: KVCacheTier, geometry: Geometry, tiers: TiersPlan) -> tuple[str, ...]:
    """What the picker of this flavour and version cannot do as the resource asks, one line each.

    Raises:
        InvalidInputError: As `plan_router`.
    """
    return _config(resource, _given(resource, geometry, tiers)).warnings


def local_picker(plan: Plan) -> PickerConfig:
    """Configuration of a local run's picker with the plan's weights and tiers, whatever flavour it names.

    Raises:
        InvalidInputError: The weights leave no scorer.
    """
    given = _given(plan.resource, plan.geometry, plan.tiers, alone=True)
    return _config(plan.resource, given, LOCAL_FLAVOR)


def _given(
    resource: KVCacheTier, geometry: Geometry, tiers: TiersPlan, *, alone: bool = False
) -> PickerInput:
    """What decides the configuration; `alone` of a local run's picker."""
    spec = resource.spec
    return PickerInput(
        weights=ScorerWeights(spec.router.weights.by_scorer()),
        tokens=TierTokens(
            {Tier.GPU: None} | {each: picker_tokens(tier) for each, tier in tiers.by_tier.items()}
        ),
        engine_block_tokens=tiers.observed_block_tokens or geometry.block_tokens,
        max_prefix_tokens=spec.engine.max_model_len or geometry.max_position_tokens,
        version=None if alone else spec.router.version,
        # beside one another on one machine the engines would publish at one address
        kv_events=spec.router.kv_events and not alone,
        engine_tls=serves_tls(spec.engine),
        max_body_bytes=None if spec.router.max_body_size is None else spec.router.max_body_size.bytes,
    )


def _config(resource: KVCacheTier, given: PickerInput, instead: Flavor | None = None) -> PickerConfig:
    """Configuration of the resource's picker, or of another flavour's."""
    try:
        return picker_config(instead or resource.spec.router.flavor, given)
    except UnsupportedVersionError as error:
        raise InvalidInputError("", Problem("spec.router.version", str(error))) from error
    except PickerConfigError as error:
        raise InvalidInputError("", Problem("spec.router.weights", str(error))) from error
