"""What is known of a resource: as the API server and its pods said it, and what engines and pickers count."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from kvtier_common.kubernetes.answers import Document
from kvtier_common.metrics.text import Families, read_labels
from kvtier_common.metrics.tier_metrics import (
    CACHED_BY_SOURCE,
    CAPACITY_BYTES,
    CAPACITY_TOKENS,
    EVICTED_CHUNKS,
    USED_BYTES,
    cached_tokens,
)
from kvtier_common.tier import BEYOND_DEVICE, Tier
from kvtier_operator.api.resource import PROGRESS, AttachState
from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.cli.cluster.shares import Shares, shares_of
from kvtier_operator.planning.base.names import ATTACHED, COMPONENT_LABEL, Component
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.tiers import traits_of_tier
from kvtier_operator.reconcile.cache.pods import not_ready_pod

_ASKED: Final = b"vllm:prefix_cache_queries_total"
_LOAD_S: Final = b"vllm:kv_offload_load_time_total"
_COMPUTED: Final = b"vllm:request_prefill_kv_computed_tokens_sum"
_PREFILL_S: Final = b"vllm:request_prefill_time_seconds_sum"
_DEVICE_USE: Final = b"vllm:kv_cache_usage_perc"
_TIERS: Final = [traits_of_tier(tier) for tier in BEYOND_DEVICE]
_GROWING: Final = [traits.growing.encode() for traits in _TIERS if traits.growing]
_DEGRADED: Final = [traits.degraded.encode() for traits in _TIERS if traits.degraded]
_PAYS: Final = [traits.pays.encode() for traits in _TIERS if traits.pays]
ENGINE_METRICS: Final = (
    *(CACHED_BY_SOURCE, _ASKED, _LOAD_S, _COMPUTED, _PREFILL_S, _DEVICE_USE),
    *(*_GROWING, *_DEGRADED, *_PAYS),
    *(
        name
        for names in (CAPACITY_BYTES, USED_BYTES, EVICTED_CHUNKS, CAPACITY_TOKENS)
        for name in names.values()
    ),
)
"""Names of the samples of which something is read."""


@dataclass(frozen=True, slots=True)
class EngineFigures:
    """Counters since each engine's start and gauges as they are, of all engines that answered."""

    engines: int  # how many answered
    asked_tokens: int  # tokens of all prompts
    hit_tokens: Mapping[Tier, int]  # of those, what each tier supplied
    load_s: float  # seconds that loads from the tiers to the device took
    # tokens that a second of a request's prefill computes; None before the first
    prefill_tokens_per_s: float | None
    capacity_bytes: Mapping[Tier, int]  # of the tiers whose backend tells
    capacity_tokens: Mapping[Tier, int]  # the same in tokens
    # how full each tier is, 0 to 1, where the backend tells; of the device what requests use
    used_share: Mapping[Tier, float]
    evicted_chunks: Mapping[Tier, int]  # chunks that left a tier to make room
    growing: int  # engines with a tier that is still being taken
    degraded: int  # engines that do without a tier, which cannot be used
    unpaid: int  # engines that do without a tier because computing is sooner

    @property
    def found_share(self) -> float | None:
        """Share of all prompt tokens that some tier supplied; None before the first prompt."""
        return sum(self.hit_tokens.values()) / self.asked_tokens if self.asked_tokens else None


def engine_figures(engines: Sequence[Families]) -> EngineFigures:
    """The figures of some engines, added up."""

    def total(name: bytes) -> float:
        return sum(engine.total(name) for engine in engines)

    def most(name: bytes) -> float:
        return max(value for engine in engines for _, value in engine.of(name))

    def total_by_tier(names: Mapping[Tier, bytes]) -> dict[Tier, int]:
        return {
            tier: int(most(name) if tier.shared else total(name))
            for tier, name in names.items()
            if any(engine.of(name) for engine in engines)
        }

    hits = [cached_tokens(engine) for engine in engines]
    prefill_s, capacity, used = total(_PREFILL_S), total_by_tier(CAPACITY_BYTES), total_by_tier(USED_BYTES)
    return EngineFigures(
        engines=len(engines),
        asked_tokens=int(total(_ASKED)),
        hit_tokens={tier: sum(hit[tier] for hit in hits) for tier in Tier},
        load_s=total(_LOAD_S),
        prefill_tokens_per_s=(total(_COMPUTED) / prefill_s or None) if prefill_s else None,
        capacity_bytes=capacity,
        capacity_tokens=total_by_tier(CAPACITY_TOKENS),
        used_share=_device_use(engines)
        | {tier: used.get(tier, 0) / size for tier, size in capacity.items() if size},
        evicted_chunks=total_by_tier(EVICTED_CHUNKS),
        growing=sum(any(engine.total(name) > 0 for name in _GROWING) for engine in engines),
        degraded=sum(any(engine.total(name) > 0 for name in _DEGRADED) for engine in engines),
        unpaid=sum(any(engine.of(name) and engine.total(name) == 0 for name in _PAYS) for engine in engines),
    )


def _device_use(engines: Sequence[Families]) -> dict[Tier, float]:
    """The mean over all engines, of which a pod may have several."""
    shares = [value for engine in engines for _, value in engine.of(_DEVICE_USE)]
    return {Tier.GPU: sum(shares) / len(shares)} if shares else {}


_PODS: Final = b"kvtier_picker_pods"
_STALE: Final = b"kvtier_picker_pods_stale"
_PICKS: Final = b"kvtier_picker_picks_total"
_PROMPT: Final = b"kvtier_picker_prompt_tokens_total"
_PREDICTED: Final = b"kvtier_picker_predicted_hit_tokens_total"
_BLOCKS: Final = b"kvtier_picker_index_blocks"
_CAPACITY_BLOCKS: Final = b"kvtier_picker_tier_capacity_blocks"
_RATIOS: Final = tuple(
    (f"{name}_sum".encode(), f"{name}_count".encode())
    for name in (flavor_traits(flavor).hit_ratio for flavor in Flavor)
    if name
)
"""Sum and count of matched shares, by flavours that have such a histogram."""
_LABELS: Final = {tier.label: tier for tier in Tier}
PICKER_METRICS: Final = (
    *(_PODS, _STALE, _PICKS, _PROMPT, _PREDICTED, _BLOCKS, _CAPACITY_BLOCKS),
    *(name for names in _RATIOS for name in names),
)
"""Names of the samples of which something is read."""


@dataclass(frozen=True, slots=True)
class PickerFigures:
    """What the pickers that answered say."""

    pickers: int  # how many answered
    # engines that may be picked; None where the picker does not tell, as for all below
    known_engines: int | None
    stale_engines: int | None  # of those, without a recent reading of their metrics
    picks: int | None  # requests that got an engine
    believed_share: float | None  # mean share of a prompt that the picked engine was believed to hold, 0 to 1
    index_share: Mapping[Tier, float]  # how full the index is by tier, 0 to 1


def picker_figures(pickers: Sequence[Families]) -> PickerFigures:
    """The figures of a resource's pickers; one that runs beside another knows the same engines."""

    def most(name: bytes) -> int | None:
        return max((int(picker.total(name)) for picker in pickers if picker.of(name)), default=None)

    blocks, capacity = _by_tier(pickers, _BLOCKS), _by_tier(pickers, _CAPACITY_BLOCKS)
    return PickerFigures(
        pickers=len(pickers),
        known_engines=most(_PODS),
        stale_engines=most(_STALE),
        picks=sum(int(picker.total(_PICKS)) for picker in pickers) if most(_PODS) is not None else None,
        believed_share=_believed_share(pickers),
        index_share={tier: blocks.get(tier, 0) / size for tier, size in capacity.items() if size},
    )


def _believed_share(pickers: Sequence[Families]) -> float | None:
    """Ours counts tokens by tier, which overlap: the largest tier holds what the others do."""
    asked = sum(picker.total(_PROMPT) for picker in pickers)
    if asked:
        return max(_by_tier(pickers, _PREDICTED).values(), default=0.0) / asked
    total = sum(picker.total(name) for picker in pickers for name, _ in _RATIOS)
    count = sum(picker.total(name) for picker in pickers for _, name in _RATIOS)
    return total / count if count else None


def _by_tier(pickers: Sequence[Families], name: bytes) -> dict[Tier, float]:
    values: dict[Tier, float] = {}
    for picker in pickers:
        for labels, value in picker.of(name):
            label = read_labels(labels).get("tier", "")
            if label in _LABELS:
                values[_LABELS[label]] = values.get(_LABELS[label], 0.0) + value
    return values


@dataclass(frozen=True, slots=True)
class TierRow:
    """One tier, of all engines that answered; of one engine, as planned, where none did."""

    tier: Tier  # which
    capacity_bytes: int | None  # its size; None where nobody tells
    capacity_tokens: int | None  # the same in tokens
    # how full it is, 0 to 1; of the device, what requests under way use. None where nobody tells.
    filled: float | None
    hit_rate: float | None  # share of all prompt tokens that it supplied; None before the first prompt
    # seconds that computing these tokens would have taken, less those that loading them took; None where
    # nothing was computed yet to compare with
    saved_s: float | None


def tier_rows(status_tiers: Mapping[str, Any], figures: EngineFigures) -> tuple[TierRow, ...]:
    """Those that the resource has, from fast to slow."""
    there = (tier for tier in Tier if tier.label in status_tiers or figures.hit_tokens[tier])
    return tuple(_tier_row(tier, status_tiers.get(tier.label) or {}, figures) for tier in there)


def _tier_row(tier: Tier, planned: Mapping[str, Any], figures: EngineFigures) -> TierRow:
    many = 1 if tier.shared else figures.engines or 1
    return TierRow(
        tier=tier,
        capacity_bytes=figures.capacity_bytes.get(tier) or _times(planned.get("bytes"), many),
        capacity_tokens=figures.capacity_tokens.get(tier) or _times(planned.get("tokens"), many),
        filled=figures.used_share.get(tier),
        hit_rate=figures.hit_tokens[tier] / figures.asked_tokens if figures.asked_tokens else None,
        saved_s=_saved_s(tier, figures),
    )


def _times(size: int | None, many: int) -> int | None:
    return None if size is None else size * many


def _saved_s(tier: Tier, figures: EngineFigures) -> float | None:
    """Loads are not told apart by tier: each has the part of their time that it has of their tokens."""
    if figures.prefill_tokens_per_s is None:
        return None
    hit = figures.hit_tokens[tier]
    loaded = sum(figures.hit_tokens[tier] for tier in BEYOND_DEVICE)
    load_s = figures.load_s * hit / loaded if tier in BEYOND_DEVICE and loaded else 0.0
    return hit / figures.prefill_tokens_per_s - load_s


@dataclass(frozen=True, slots=True)
class Seen:
    """One resource with its pods."""

    resource: Document  # the KVCacheTier
    # its engines' and pickers' pods, or those of others that have its tiers; none where they may not be
    # listed
    pods: tuple[Document, ...] = ()
    # what was found in the /metrics of each pod that was asked and answered, by its name
    metrics: Mapping[str, Families] = field(default_factory=dict)
    unread: tuple[str, ...] = ()  # what could not be read, and what would help, a line each


READY: Final = "ready"
STARTING: Final = "starting"
ENDING: Final = "ending"


@dataclass(frozen=True, slots=True)
class PodRow:
    """One pod."""

    name: str
    component: str  # what it is
    state: str  # `ready`, `starting`, `ending`, or the reason why it does not start
    message: str  # what its status says about that; empty where it is ready
    restarts: int  # of its containers, together
    age_s: float  # since it was made
    node: str  # its node; empty before it has one


def pod_rows(pods: Iterable[Mapping[str, Any]], now: datetime) -> tuple[PodRow, ...]:
    """Engines, then the gateway's pods, then pickers, then a store's, by name."""
    rows = (_pod_row(pod, now) for pod in pods)
    wanted = (Component.ENGINE, Component.GATEWAY, Component.PICKER, Component.STORE)
    return tuple(sorted((row for row in rows if row.component in wanted), key=_place))


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether a pod answers: it is ready and not on its way out."""
    return not_ready_pod(pod) is None


def selected_by(resource: Mapping[str, Any]) -> str:
    """Label selector of the pods that spec.attach selects; empty for a resource that has its own."""
    attach = resource["spec"].get("attach") or {}
    labels = (attach.get("podSelector") or {}).get("matchLabels") or {}
    return ",".join(f"{name}={labels[name]}" for name in sorted(labels))


def is_of(resource: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Whether a pod is the resource's own; of those that spec.attach selects, whether it has its tiers."""
    name: str = resource["metadata"]["name"]
    return not selected_by(resource) or _attached_to(pod) == name


def _attached_to(pod: Mapping[str, Any]) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(ATTACHED, ""))


def component_of(pod: Mapping[str, Any]) -> str:
    """What a pod is, such as an engine, whoever owns it; empty for one that has nothing of kvtier's."""
    if _attached_to(pod):
        return Component.ENGINE.value
    return str((pod["metadata"].get("labels") or {}).get(COMPONENT_LABEL, ""))


def _place(row: PodRow) -> tuple[str, str]:
    return row.component, row.name


def _pod_row(pod: Mapping[str, Any], now: datetime) -> PodRow:
    metadata, status, trouble = pod["metadata"], pod.get("status") or {}, not_ready_pod(pod)
    containers = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    state = READY
    if trouble is not None:
        state = ENDING if trouble.terminating else trouble.reason or STARTING
    return PodRow(
        name=metadata["name"],
        component=component_of(pod),
        state=state,
        message=trouble.message if trouble else "",
        restarts=sum(container.get("restartCount", 0) for container in containers),
        age_s=(now - datetime.fromisoformat(metadata["creationTimestamp"])).total_seconds(),
        node=(pod.get("spec") or {}).get("nodeName", ""),
    )


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """A condition as the operator wrote it; `status` is True, False or Unknown."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ResourceView:
    """A resource for somebody who asks how it is.

    One with spec.attach has no replicas, but pods that it selects, and those that have its tiers.
    """

    namespace: str
    name: str
    model: str  # what its engines serve
    backend: str  # what moves blocks
    flavor: str  # which picker
    replicas: int  # engines that are wanted; with an autoscaler, those that it has chosen
    ready_replicas: int  # engines that are ready
    is_attached: bool  # whether its tiers go to pods that others own
    is_acted_on: bool  # whether the operator's status is about the latest spec
    conditions: tuple[ConditionRow, ...]  # in the operator's order
    pods: tuple[PodRow, ...]  # its engines, pickers and gateways of its own
    engines: EngineFigures  # what engines count
    tiers: tuple[TierRow, ...]  # a row for each tier
    picker: PickerFigures  # what pickers say
    entries: Mapping[str, int]  # LRU capacities of the picker's prefix scorers, such as `cpuPrefix`
    tokens_per_entry: int | None  # tokens that one of them stands for; None where the operator did not say
    shares: Shares  # who holds what of the tiers
    config_map: str  # what has the configuration for a picker of others; empty with one of its own
    url: str  # where clients ask a gateway of its own; empty without one
    unread: tuple[str, ...]  # what could not be read, a line each


def resource_view(seen: Seen, now: datetime) -> ResourceView:
    """What was read of a resource, worked out."""
    metadata, spec = seen.resource["metadata"], seen.resource["spec"]
    status = seen.resource.get("status") or {}
    router = status.get("router") or {}
    selected = (status.get("attach") or {}).get("pods") or ()
    left_alone = {pod["name"] for pod in selected if pod["state"] == AttachState.LEFT_ALONE.value}
    components = {pod["metadata"]["name"]: component_of(pod) for pod in seen.pods}

    def metrics_of(component: Component) -> list[Families]:
        return [
            metrics
            for pod, metrics in seen.metrics.items()
            if components.get(pod) == component and pod not in left_alone
        ]

    told = metrics_of(Component.ENGINE)
    engines = engine_figures(told)
    return ResourceView(
        namespace=metadata["namespace"],
        name=metadata["name"],
        model=(spec.get("model") or {}).get("name", ""),
        backend=spec.get("backend", ""),
        flavor=(spec.get("router") or {}).get("flavor", ""),
        replicas=len(selected) if selected_by(seen.resource) else _wanted_replicas(spec, status),
        ready_replicas=status.get(
            "readyReplicas", sum(pod["state"] == AttachState.ATTACHED.value for pod in selected)
        ),
        is_attached=bool(selected_by(seen.resource)),
        is_acted_on=status.get("observedGeneration") == metadata.get("generation"),
        conditions=tuple(
            ConditionRow(condition["type"], condition["status"], condition["reason"], condition["message"])
            for condition in status.get("conditions", ())
            if condition["type"] not in PROGRESS
        ),
        pods=pod_rows(seen.pods, now),
        engines=engines,
        tiers=tier_rows(status.get("tiers") or {}, engines),
        picker=picker_figures(metrics_of(Component.PICKER)),
        entries=router.get("entries") or {},
        tokens_per_entry=router.get("tokensPerEntry"),
        shares=shares_of(told, status.get("prefixes") or ()),
        config_map=router.get("configMap") or "",
        url=router.get("url") or "",
        unread=seen.unread,
    )


def _wanted_replicas(spec: Mapping[str, Any], status: Mapping[str, Any]) -> int:
    scaling = spec.get("autoscaling")
    wanted: int = (
        max(scaling.get("minReplicas", 1), status.get("replicas", 0)) if scaling else spec.get("replicas", 1)
    )
    return wanted
