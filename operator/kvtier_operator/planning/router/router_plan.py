"""The endpoint picker and kvtier's own gateway, planned: configuration, images and compute resources."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from kvtier_common.tier import Tier
from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.api.resource import KVCacheTier, Spec
from kvtier_operator.api.spec.router import Flavor, Standalone
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.base.kept import retained_shares
from kvtier_operator.planning.base.names import Names
from kvtier_operator.planning.base.tier_plan import TiersPlan
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.flavors.builtin import FLAVOR
from kvtier_operator.planning.images import ImageSource
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.pod.budget import Compute, compute
from kvtier_operator.planning.tiers.capacity import picker_tokens
from kvtier_operator.planning.units import MIB, quantity, round_up
from kvtier_scorer.config.contract import (
    BYTES_PER_HELD_BLOCK,
    EVENTS_BYTES,
    BodyLimits,
    HintPolicy,
    ShareFrom,
    uploads_bytes,
)
from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.model import (
    PickerConfig,
    PickerConfigError,
    PickerInput,
    ScorerWeights,
    TierTokens,
    UnsupportedVersionError,
)

LOCAL_FLAVOR: Final = FLAVOR
"""The picker of a run on one machine."""
_CPU: Final = "500m"
"""It may burst; at a change, the next picker starts beside it."""
_BASE_BYTES: Final = 512 * MIB
_DEFAULT_ENTRIES: Final = 31250
"""Entries a pod where the picker takes them from the engine: upstream's default."""
_LEAST_PODS: Final = 8
"""Engines that the picker's memory allows for at least."""
ENVOY_BYTES: Final = 64 * MIB
"""Of memory that Envoy itself takes, without a request; some 50 MiB as seen."""
COPIES: Final = 3
"""Of a body that Envoy gives a picker whole: the body, the message around it, and that as bytes."""
_ENVOY_REQUESTS: Final = {"cpu": "500m", "memory": "256Mi"}
_LEAST_LIMIT_BYTES: Final = 1024 * MIB
_PART_BYTES: Final = MIB
"""Of a body that goes through in parts. Upstream's pickers take no message above 4 MiB, grpc-go's default
(inference extension v1.5.0, pkg/epp/server/runserver.go)."""
_HEAP_PERCENT: Final = 90
"""Of the memory limit: the rest is what Envoy takes beside its heap."""
_MODEL_ROUTER_REQUESTS: Final = {"cpu": "100m", "memory": "192Mi"}
_MODEL_ROUTER_BYTES: Final = 256 * MIB
"""Without a request, some 140 MiB as seen, and what its transport holds at most."""
_MODEL_ROUTER_COPIES: Final = 2
"""Of a body: itself, and the parts in which it comes and goes."""
_KEYS: Final = Compute({"cpu": "10m", "memory": "32Mi"}, {"memory": "64Mi"})
"""Some 24 MiB as seen, and a Secret's megabyte a few times."""
_ENGINE_KEY: Final = ("--api-key", "VLLM_API_KEY")
"""By which vLLM asks for keys itself (0.32 and 0.33, entrypoints/openai)."""


@dataclass(frozen=True, slots=True)
class PickerResources(Compute):
    """The picker's compute resources."""

    memory_bytes: int  # what its index may take with everything around it


@dataclass(frozen=True, slots=True)
class ModelRouterPlan:
    """What reads, beside kvtier's own gateway, which resource's model a request asks for."""

    image: str  # kvtier's own picker's, which has it
    compute: Compute  # its requests and limits
    routes: Mapping[str, str]  # other resources, by the model that requests name
    body_limits: BodyLimits  # of the bodies that it holds


@dataclass(frozen=True, slots=True)
class KeysPlan:
    """What reads, beside kvtier's own gateway, the keys that clients may show."""

    image: str  # kvtier's own picker's, which has it
    compute: Compute  # its requests and limits
    passes_on: bool  # whether the engine gets a client's key: it asks for one itself


@dataclass(frozen=True, slots=True)
class GatewayPlan:
    """kvtier's own gateway."""

    image: str  # Envoy's image
    compute: Compute  # its requests and limits
    heap_bytes: int  # memory from which on it takes no more requests
    held_bytes: int  # what is held of a request at most; a body that is held whole is no larger
    uploads_bytes: int | None  # what is on its way of all bodies, together; None where nothing counts it
    url: str  # base URL for clients in the cluster
    # what sends requests for other resources' models on; None where there are none
    model_router: ModelRouterPlan | None = None
    keys: KeysPlan | None = None  # None where anybody may ask


@dataclass(frozen=True, slots=True)
class RouterPlan:
    """The endpoint picker."""

    flavor: str  # which picker
    version: str  # its version
    image: str  # its image
    tokens_per_entry: int  # tokens one LRU entry stands for
    # LRU capacities of the tiers' prefix scorers, per pod; None where it is taken from metrics
    entries: Mapping[Tier, int | None]
    gpu_from_metrics: bool  # whether the picker asks the engine for the size of the device's cache
    config: str  # EndpointPickerConfig, as YAML
    config_hash: str  # hash of `config`; the picker restarts when it changes
    resources: PickerResources  # its requests and limits
    unread: tuple[str, ...]  # scorers with a weight that this picker does not have
    gateway: GatewayPlan | None = None  # kvtier's own gateway before it; None where others take the requests


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
    wanted = _picker_input(resource, geometry, tiers)
    gateway = _gateway(resource, images, wanted.bodies)
    config = _picker_config(
        resource, replace(wanted, uploads_bytes=gateway.uploads_bytes) if gateway else wanted
    )
    return RouterPlan(
        flavor=router.flavor,
        version=config.version,
        image=router.image or images.picker(router.flavor, config.version, tested=router.version is None),
        tokens_per_entry=config.tokens_per_entry,
        entries=config.entries,
        gpu_from_metrics=config.gpu_from_metrics,
        config=config.text,
        config_hash=hashlib.sha256(config.text.encode()).hexdigest()[:16],
        resources=_picker_resources(resource.spec, config.entries, wanted.bodies),
        unread=config.unread,
        gateway=gateway,
    )


def router_warnings(resource: KVCacheTier, geometry: Geometry, tiers: TiersPlan) -> tuple[str, ...]:
    """What the picker of this flavour and version cannot do as the resource asks, one line each.

    Raises:
        InvalidInputError: As `plan_router`.
    """
    return _picker_config(resource, _picker_input(resource, geometry, tiers)).warnings


def local_picker(resource: KVCacheTier, geometry: Geometry, tiers: TiersPlan) -> PickerConfig:
    """Configuration of a local run's picker with a plan's tiers, whatever flavour the resource names.

    Raises:
        InvalidInputError: The weights leave no scorer.
    """
    return _picker_config(resource, _picker_input(resource, geometry, tiers, alone=True), LOCAL_FLAVOR)


def _picker_input(
    resource: KVCacheTier, geometry: Geometry, tiers: TiersPlan, *, alone: bool = False
) -> PickerInput:
    """What decides the configuration; `alone` of a local run's picker."""
    spec = resource.spec
    return PickerInput(
        weights=ScorerWeights(spec.router.weights.by_scorer()),
        tokens=TierTokens(
            {Tier.GPU: None}
            | {name: picker_tokens(tier) for name, tier in tiers.by_tier.items() if not name.shared}
        ),
        engine_block_tokens=tiers.observed_block_tokens or geometry.block_tokens,
        max_prefix_tokens=geometry.longest_tokens(spec.engine),
        version=None if alone else spec.router.version,
        # beside one another on one machine the engines would publish at one address
        kv_events=spec.router.kv_events and not alone,
        engine_tls=spec.engine.extra_args.serves_tls,
        max_body_bytes=None if spec.router.max_body_size is None else spec.router.max_body_size.bytes,
        hints=HintPolicy(spec.router.hints.value),
        share_from=ShareFrom(spec.router.share_from.value),
        retained=retained_shares(spec)[Tier.CPU],
    )


def _picker_config(resource: KVCacheTier, wanted: PickerInput, flavor: Flavor | None = None) -> PickerConfig:
    """Configuration of the resource's picker, or of another flavour's."""
    try:
        return picker_config(flavor or resource.spec.router.flavor, wanted)
    except UnsupportedVersionError as error:
        raise InvalidInputError("", Problem("spec.router.version", str(error))) from error
    except PickerConfigError as error:
        raise InvalidInputError("", Problem("spec.router.weights", str(error))) from error


def _picker_resources(spec: Spec, entries: Mapping[Tier, int | None], bodies: BodyLimits) -> PickerResources:
    """What the resource asks for, over kvtier's own: memory for every index, processor time that may burst.

    The limit of kvtier's own picker holds the worst that clients may send it, that of upstream's, which have
    no such bound, a good deal of requests.
    """
    index_bytes = _index_bytes(spec, entries)
    traits = flavor_traits(spec.router.flavor).memory
    memory_bytes = round_up(_BASE_BYTES + index_bytes, 64 * MIB)
    most_bytes = traits.idle_bytes + index_bytes + _engines(spec) * traits.in_flight_bytes
    most_bytes += bodies.worst_memory_bytes if traits.bounds_bodies else 0
    most_bytes += EVENTS_BYTES if spec.router.kv_events else 0
    most_bytes = max(memory_bytes, round_up(most_bytes, 64 * MIB))
    own = Compute(
        requests={"cpu": _CPU, "memory": quantity(memory_bytes)},
        limits={"memory": quantity(max(2 * memory_bytes, most_bytes))},
    )
    resources = compute(own, spec.router.resources)
    return PickerResources(resources.requests, resources.limits, memory_bytes=most_bytes)


def _index_bytes(spec: Spec, entries: Mapping[Tier, int | None]) -> int:
    """Memory for the index of every engine, and for what their events tell."""
    per_pod = sum(filter(None, entries.values()))
    if entries.get(Tier.GPU) is None:
        per_pod += _DEFAULT_ENTRIES
    entry_bytes = flavor_traits(spec.router.flavor).memory.bytes_per_entry
    entry_bytes += BYTES_PER_HELD_BLOCK if spec.router.kv_events else 0
    return per_pod * _engines(spec) * entry_bytes


def _engines(spec: Spec) -> int:
    """Engines that there is memory for: a power of two, and 8 at least.

    Other resources are another pod, and a picker that restarts forgets its index, which scaling the engines
    must not cost each time.
    """
    return max(_LEAST_PODS, 1 << (spec.most_pods - 1).bit_length())


def _gateway(resource: KVCacheTier, images: ImageSource, bodies: BodyLimits) -> GatewayPlan | None:
    """The gateway; None where others take the requests."""
    wanted = resource.spec.router.standalone
    if wanted is None:
        return None
    whole = flavor_traits(resource.spec.router.flavor).takes_whole_bodies
    held_bytes = bodies.max_bytes if whole else _PART_BYTES
    most_bytes = uploads_bytes(bodies.max_bytes)
    limit_bytes = (ENVOY_BYTES + COPIES * most_bytes) * 100 // _HEAP_PERCENT
    limits = {"memory": quantity(max(_LEAST_LIMIT_BYTES, round_up(limit_bytes, MIB)))}
    resources = compute(Compute(_ENVOY_REQUESTS, limits), wanted.resources)
    heap_bytes = parse_bytes(resources.limits["memory"]) * _HEAP_PERCENT // 100
    held_together_bytes = max(held_bytes, min(most_bytes, (heap_bytes - ENVOY_BYTES) // COPIES))
    names = Names.of_resource(resource)
    scheme = "https" if wanted.tls_secret_name else "http"
    return GatewayPlan(
        image=wanted.image or images.envoy(),
        compute=resources,
        heap_bytes=heap_bytes,
        held_bytes=held_bytes,
        uploads_bytes=held_together_bytes if whole or wanted.models else None,
        url=f"{scheme}://{names.gateway}.{names.namespace}.svc/v1",
        model_router=_model_router(
            wanted, images, BodyLimits(bodies.max_bytes, max(bodies.max_bytes, held_together_bytes))
        ),
        keys=_keys(resource.spec, images) if wanted.api_keys else None,
    )


def _keys(spec: Spec, images: ImageSource) -> KeysPlan:
    option, variable = _ENGINE_KEY
    asks = any(argument.means(option) for argument in spec.engine.extra_args.arguments)
    asks |= any(one.name == variable for one in spec.engine.env)
    return KeysPlan(images.picker(FLAVOR, KVTIER_VERSION, tested=True), _KEYS, passes_on=asks)


def _model_router(wanted: Standalone, images: ImageSource, bodies: BodyLimits) -> ModelRouterPlan | None:
    if not wanted.models:
        return None
    needed_bytes = _MODEL_ROUTER_BYTES + _MODEL_ROUTER_COPIES * bodies.total_bytes
    limits = {"memory": quantity(round_up(needed_bytes, MIB))}
    return ModelRouterPlan(
        image=images.picker(FLAVOR, KVTIER_VERSION, tested=True),
        compute=Compute(_MODEL_ROUTER_REQUESTS, limits),
        routes={model.name: model.resource for model in wanted.models},
        body_limits=bodies,
    )
