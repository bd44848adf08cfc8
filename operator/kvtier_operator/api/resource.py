"""The KVCacheTier resource itself, and its status: what was planned and observed, and whether it works."""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, create_model, field_validator
from pydantic_core import PydanticCustomError

from kvtier_common.tier import BEYOND_DEVICE, OF_A_POD, Tier
from kvtier_operator.api.base import ApiModel, Rule, rule
from kvtier_operator.api.formats import LABEL_PATTERN, DnsSubdomain, Duration, Labels, seconds_of, share_of
from kvtier_operator.api.spec.attach import MOST_RIVALS, AttachSpec, attach_rules
from kvtier_operator.api.spec.engine import MOST_REPLICAS, Autoscaling, EngineSpec
from kvtier_operator.api.spec.kept import MOST_PREFIXES, MOST_TENANTS, Prefix, Tenant, kept_rules
from kvtier_operator.api.spec.model import ModelSpec
from kvtier_operator.api.spec.router import RouterSpec
from kvtier_operator.api.spec.tiers import (
    DEFAULT_BACKEND,
    Ability,
    Backend,
    TierFields,
    TierSpec,
    backends_with,
    fields_of,
    one_of,
    with_tiers,
)
from kvtier_operator.api.spec.tiers.cpu import CpuTierSpec
from kvtier_operator.api.spec.tiers.disk import DiskTierSpec
from kvtier_operator.api.spec.tiers.remote import RemoteTierSpec
from kvtier_operator.api.spec.tracing import Tracing

GROUP: Final = "kvtier.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "KVCacheTier"
MAX_NAME_LENGTH: Final = 48
_MOST_PREFIXES_S: Final = 1800
_MOST_SHOWN: Final = 8
"""Of the terms of a sum."""
NAME_PATTERN: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_FROM_METRICS: Final = "; empty: taken from the engine's metrics"
NAME_MESSAGE: Final = "metadata.name must be a DNS label (a-z, 0-9, -, a letter first) of at most 48 characters: Services carry it"


class StatusModel(ApiModel):
    """A part of the status, which only the operator writes; what a newer one wrote does not stop an older one."""

    model_config = ConfigDict(extra="ignore")


class Source(StrEnum):
    """Where a figure comes from."""

    PLANNED = "Planned"
    OBSERVED = "Observed"


class TierStatus(StatusModel):
    """One tier's size, per engine pod."""

    bytes: int | None = Field(None, description="Size in bytes.", json_schema_extra={"format": "int64"})
    tokens: int | None = Field(None, description="Tokens it holds.", json_schema_extra={"format": "int64"})
    source: Source = Field(Source.PLANNED, description="Planned, or Observed from the running engines.")


_ENGINE: Final = f"an engine of backend {one_of(backends_with(Ability.TELLS_OF_TIERS))}"
_TOLD: Final[Mapping[str, tuple[Any, Any]]] = {
    "block_tokens": (
        int | None,
        Field(
            None,
            description="Tokens of one KV block, as an engine says.",
            json_schema_extra={"format": "int64"},
        ),
    ),
    "pinned_bytes": (
        int | None,
        Field(
            None,
            description=f"Bytes locked in memory, on a GPU page-locked for DMA, as {_ENGINE} says.",
            json_schema_extra={"format": "int64"},
        ),
    ),
    "pays": (
        bool | None,
        Field(
            None,
            description=f"Whether reading is sooner than computing again, as {_ENGINE} has measured.",
        ),
    ),
}
"""What engines may say of a tier beside its size."""


@cache
def tier_status(tier: TierFields) -> type[TierStatus]:
    """The status of a tier, with what engines say of this one."""
    fields: dict[str, Any] = {name: _TOLD[name] for name in tier.tells}
    name = f"{tier.title.capitalize()}TierStatus"
    return create_model(name, __base__=TierStatus, __module__=__name__, __doc__=TierStatus.__doc__, **fields)


@with_tiers(lambda tier: (tier_status(tier) | None, Field(None, description=tier.status)))
class TiersStatus(StatusModel):
    """All tiers' sizes."""


@with_tiers(
    lambda tier: (
        int | None,
        Field(
            None,
            description=f"Entries of the {tier.title} prefix scorer{'' if tier.spec else _FROM_METRICS}.",
        ),
    ),
    "_prefix",
    OF_A_POD,
)
class RouterEntries(StatusModel):
    """LRU capacities of the prefix scorers, per engine pod."""


class RouterStatus(StatusModel):
    """The endpoint picker's configuration."""

    entries: RouterEntries = Field(default_factory=RouterEntries, description="LRU capacities in force.")
    tokens_per_entry: int | None = Field(
        None, description="Tokens one entry stands for in this flavour and version."
    )
    config_hash: str | None = Field(None, description="Hash of the picker's configuration.")
    config_map: str | None = Field(
        None, description="With spec.attach, the ConfigMap that has it, under the key epp."
    )
    url: str | None = Field(
        None,
        description="Base URL for clients in the cluster, with gateway provider standalone, such as http://qwen3-32b-gateway.default.svc/v1.",
    )


class ConditionStatus(StrEnum):
    """Kubernetes' three-valued truth."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


STALLED: Final = "Stalled"
RECONCILING: Final = "Reconciling"
PROGRESS: Final = (STALLED, RECONCILING)
"""Conditions for deployment tools, there only while they are True; they repeat what another says."""
PENDING: Final[JsonValue] = {
    "type": "Ready",
    "status": ConditionStatus.UNKNOWN.value,
    "reason": "Pending",
    "message": "kvtier's operator has not looked at it yet",
    "lastTransitionTime": "1970-01-01T00:00:00Z",
}
"""The condition that the API server gives a new resource, lest a tool that waits take it for ready."""


class Condition(StatusModel):
    """One condition, as metav1.Condition."""

    type: str = Field(
        description="Accepted, BudgetFits, NodesFit, EnginesReady, RouterReady, AutoscalerReady, StoreReady, Attached, Ready, Stalled or Reconciling.",
        max_length=316,
    )
    status: ConditionStatus = Field(description="True, False or Unknown.")
    observed_generation: int | None = Field(
        None,
        description="Generation of the resource this condition speaks of.",
        ge=0,
        json_schema_extra={"format": "int64"},
    )
    last_transition_time: str = Field(
        description="When the condition last changed.", json_schema_extra={"format": "date-time"}
    )
    reason: str = Field(
        description="CamelCase reason.",
        min_length=1,
        max_length=1024,
        pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    )
    message: str = Field(description="What a person needs to know, with numbers.", max_length=32768)


class AttachState(StrEnum):
    """What became of a pod that `spec.attach` selects."""

    ATTACHED = "Attached"
    STARTED_BEFORE = "StartedBefore"
    LEFT_ALONE = "LeftAlone"


class AttachedPod(StatusModel):
    """One pod that `spec.attach` selects."""

    name: str = Field(description="Name of the pod.")
    state: AttachState = Field(
        description="Attached, StartedBefore (made before the plan was published, or with an older one; it gets the tiers when it is made anew) or LeftAlone."
    )
    reason: str | None = Field(None, description="CamelCase reason, of one that is left alone.")
    message: str | None = Field(None, description="What a person needs to know, or can do.")


class AttachWithdrawal(StatusModel):
    """Why a plan was taken back last: a pod that was made with it did not start."""

    reason: str = Field(description="CamelCase reason, as in condition Attached.")
    message: str = Field(description="What held the pod up.")
    pod: str = Field(description="Name of the pod.")
    times: int = Field(description="How often in a row; each time it stays so twice as long.", ge=1)
    retry_at: str = Field(
        description="When it is published again.", json_schema_extra={"format": "date-time"}
    )


class LeftOutPods(StatusModel):
    """Pods that another KVCacheTier selects, which get the tier of neither."""

    name: str = Field(description="Name of that KVCacheTier.")
    match_labels: dict[str, str] = Field(description="Labels of the pods.")


class AttachStatus(StatusModel):
    """What pods that `spec.attach` selects are given when they are made; the plan is there while it is published."""

    settings: str | None = Field(None, description="The connector's settings, as one JSON object.")
    memory: str | None = Field(
        None, description="Memory that is added to the container's request and limit, where it has them."
    )
    hugepages: dict[str, str] | None = Field(
        None, description="Huge pages that are added, by resource, such as hugepages-2Mi."
    )
    ephemeral_storage: str | None = Field(None, description="Size of the disk tier's volume.")
    leaves_out: list[LeftOutPods] | None = Field(
        None,
        description="Pods that are not given the plan, since other KVCacheTiers select them.",
        max_length=MOST_RIVALS,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    withdrawn: AttachWithdrawal | None = Field(
        None, description="Why the plan was taken back last; gone when a pod has started with it since."
    )
    pods: list[AttachedPod] | None = Field(
        None,
        description="The pods, as far as they are listed.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )


class PrefixStatus(StatusModel):
    """One of spec.prefixes, as an engine says."""

    name: str = Field(description="Its name.")
    tokens: int | None = Field(
        None,
        description="Tokens of it, once an engine has computed it.",
        json_schema_extra={"format": "int64"},
    )
    cached_tokens: int | None = Field(
        None,
        description="Of those, what the engine found in a cache when it asked for it first: 0 where it computed all.",
        json_schema_extra={"format": "int64"},
    )


class Status(StatusModel):
    """What the operator last saw and did."""

    observed_generation: int | None = Field(
        None, description="Generation last acted on.", json_schema_extra={"format": "int64"}
    )
    replicas: int | None = Field(None, description="Engine pods that exist.", ge=0)
    ready_replicas: int | None = Field(None, description="Engine pods that are ready.", ge=0)
    selector: str | None = Field(
        None, description="Label selector of the engine pods, for the scale subresource."
    )
    tiers: TiersStatus | None = Field(None, description="The tiers' sizes, per engine pod.")
    router: RouterStatus | None = Field(None, description="The endpoint picker's configuration.")
    prefixes: list[PrefixStatus] | None = Field(
        None,
        description="The prefixes, as one engine says.",
        max_length=MOST_PREFIXES,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    attach: AttachStatus | None = Field(
        None, description="What pods that spec.attach selects are given, and what became of each."
    )
    conditions: list[Condition] = Field(
        default_factory=list,
        description="Accepted, BudgetFits, NodesFit, EnginesReady, RouterReady, Ready; AutoscalerReady with spec.autoscaling, StoreReady with spec.tiers.remote.managed. With spec.attach Accepted, Attached and Ready alone. Stalled while somebody has to act, Reconciling while time may do.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )


class ImagePullSecret(ApiModel):
    """A Secret to pull images with, in the resource's namespace."""

    name: DnsSubdomain = Field(description="Name of the Secret.")


_OWN_LABELS: Final = ("app.kubernetes.io/", f"{GROUP}/")


class Observability(ApiModel):
    """Objects for a Prometheus operator and Grafana, each only if its CRD is there."""

    service_monitor: bool = Field(
        default=False,
        description="Make ServiceMonitors for engines and picker; PodMonitorings with gateway provider gke.",
    )
    prometheus_rule: bool = Field(
        default=False, description="Make a PrometheusRule with alerts about engines, picker and tiers."
    )
    dashboard: bool = Field(
        default=False, description="Make a ConfigMap with a Grafana dashboard, labelled for its sidecar."
    )
    labels: Labels = Field(
        default_factory=dict,
        description="Further labels of these objects, by which a Prometheus or a Grafana selects them, such as {release: kube-prometheus-stack}.",
        max_length=16,
    )
    interval_seconds: int = Field(
        15, description="How often engines and picker are scraped, in seconds.", ge=1, le=300
    )
    tracing: Tracing | None = Field(
        None,
        description="Engines, picker and kvtier's own gateway send traces of requests to a collector; no traces when empty.",
    )

    @field_validator("labels")
    @classmethod
    def _leave_ours_alone(cls, labels: dict[str, str]) -> dict[str, str]:
        """By some of them the operator knows its own objects."""
        for name in labels:
            if name.startswith(_OWN_LABELS):
                raise PydanticCustomError("own_label", "{name} is a label that kvtier sets", {"name": name})
        return labels


@with_tiers(lambda tier: tier.spec)
class TiersSpec(ApiModel):
    """The tiers beyond the device: CPU memory, and a disk or a store of all engines where one is wanted."""

    cpu: CpuTierSpec
    disk: DiskTierSpec | None
    remote: RemoteTierSpec | None

    def by_tier(self) -> Mapping[Tier, TierSpec]:
        """Those that are wanted, fastest first."""
        wanted = {tier: getattr(self, tier.label) for tier in BEYOND_DEVICE}
        return {tier: spec for tier, spec in wanted.items() if spec is not None}


class Spec(ApiModel):
    """What is wanted."""

    served_model: ModelSpec | None = Field(
        None,
        alias="model",
        description="The model that the engines serve. Required without attach; with it, sizes the tiers' indexes, which have to suit any model otherwise.",
    )
    attach: AttachSpec | None = Field(
        None,
        description="Gives the tiers to pods that others own, in place of engines, a picker and a gateway of the resource's own.",
    )
    replicas: int = Field(
        1,
        description="Engine pods; left out with autoscaling, where 1 means as much.",
        ge=0,
        le=MOST_REPLICAS,
    )
    autoscaling: Autoscaling | None = Field(
        None, description="Lets an autoscaler choose how many engine pods there are, in place of replicas."
    )
    backend: Backend = Field(
        DEFAULT_BACKEND,
        description=f"Who moves KV blocks: {one_of(f'{backend} ({backend.what})' for backend in Backend)}.",
    )
    engine: EngineSpec = Field(default_factory=EngineSpec, description="How vLLM runs.")
    tiers: TiersSpec = Field(description="Where the prefix cache goes beyond the device.")
    router: RouterSpec = Field(default_factory=RouterSpec, description="The endpoint picker.")
    prefixes: list[Prefix] = Field(
        default_factory=list,
        description="Beginnings of prompts that each engine computes when it starts, or reads from a tier, before it is ready; kept before others as long as they say.",
        max_length=MOST_PREFIXES,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    prefixes_within: Duration | None = Field(
        None,
        description="How long a start may take for prefixes; then the engine serves, and goes on with the rest beside. 2m when empty.",
    )
    tenants: list[Tenant] = Field(
        default_factory=list,
        description="Who shares the engines' tiers, and which part of them is whose.",
        max_length=MOST_TENANTS,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    image_pull_secrets: list[ImagePullSecret] = Field(
        default_factory=list,
        description="Secrets of this namespace that engines, picker and gateway pull their images with; those that the operator was installed with are named after them.",
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    observability: Observability = Field(default_factory=Observability, description="Monitoring objects.")

    @property
    def model(self) -> ModelSpec:
        """The model, which there always is without `attach`. Raises ValueError where there is none."""
        if self.served_model is None:
            raise ValueError("spec.model is not there")
        return self.served_model

    @property
    def least_replicas(self) -> int:
        """Engine pods that there always are; as many as a local run starts."""
        return self.autoscaling.min_replicas if self.autoscaling else self.replicas

    @property
    def most_replicas(self) -> int:
        """Engine pods that there may be, but for one that a rollout adds."""
        return self.autoscaling.max_replicas if self.autoscaling else self.replicas

    @property
    def most_pods(self) -> int:
        """Engine pods that there may be at a time, with the one that a rollout adds."""
        return self.most_replicas and self.most_replicas + self.engine.rollout.surplus_pods

    @property
    def least_replicas_field(self) -> str:
        """Path of the field that says how many there always are."""
        return "spec.autoscaling.minReplicas" if self.autoscaling else "spec.replicas"

    @property
    def most_replicas_field(self) -> str:
        """Path of the field that says how many there may be."""
        return "spec.autoscaling.maxReplicas" if self.autoscaling else "spec.replicas"

    @rule(
        "!has(self.autoscaling) || self.replicas == 1",
        "with autoscaling the number of engine pods is the autoscaler's: remove replicas, or autoscaling",
        field=".replicas",
    )
    def one_who_scales(self) -> bool:
        """The API server writes the default of 1 into every resource, so that one passes."""
        return self.autoscaling is None or self.replicas == 1

    @rule(
        "has(self.model) || has(self.attach)",
        "name the model that the engines serve; only with attach may it be left out",
        field=".model",
    )
    def engines_have_a_model(self) -> bool:
        """Who attaches has a model in their own pod."""
        return self.served_model is not None or self.attach is not None

    @rule(
        "!has(self.tenants) || self.tenants.map(each, int(each.guaranteed.replace('%', ''))).sum() <= 100",
        "more than 100% is guaranteed to all tenants together: lower some",
        field=".tenants",
        said_of=lambda spec: f"more than 100% is guaranteed {_guaranteed_by(spec.tenants)}: lower some",
    )
    def guarantees_fit(self) -> bool:
        """A tier cannot keep more than it holds."""
        return sum(share_of(tenant.guaranteed) for tenant in self.tenants) <= 1 + 1e-9

    @rule(
        "!has(self.prefixesWithin) || duration(self.prefixesWithin) <= duration('30m')",
        "an engine that is started waits for more than 30m: write less",
        field=".prefixesWithin",
    )
    def start_ends(self) -> bool:
        """What is not computed by then is computed beside requests."""
        return self.prefixes_within is None or seconds_of(self.prefixes_within) <= _MOST_PREFIXES_S

    @rule(
        "!has(self.prefixesWithin) || (has(self.prefixes) && size(self.prefixes) > 0)",
        "prefixesWithin bounds the time that prefixes take: give some, or leave it out",
        field=".prefixesWithin",
    )
    def bound_has_prefixes(self) -> bool:
        """What nobody uses was meant otherwise."""
        return self.prefixes_within is None or bool(self.prefixes)

    @classmethod
    def rules(cls) -> tuple[Rule, ...]:
        """Its own, those of the tiers and of what is kept, and what may stand beside `attach`."""
        of_tiers = (of_tier for tier in Tier for of_tier in fields_of(tier).rules)
        return (*super().rules(), *of_tiers, *kept_rules(), *attach_rules(Observability))


def _guaranteed_by(tenants: list[Tenant]) -> str:
    """The sum of what is guaranteed, written out."""
    parts = [tenant.guaranteed for tenant in tenants if share_of(tenant.guaranteed)]
    shown = [*parts[:_MOST_SHOWN], *(["..."] if len(parts) > _MOST_SHOWN else [])]
    return f"({' + '.join(shown)} = {round(sum(map(share_of, parts)) * 100)}%)"


class Metadata(BaseModel):
    """The part of Kubernetes' ObjectMeta that the planner reads; the rest passes through untouched."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)

    name: str
    namespace: str = Field("default", pattern=LABEL_PATTERN, max_length=63)
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    uid: str | None = None
    generation: int | None = None


class KVCacheTier(ApiModel):
    """A vLLM model with a prefix cache beyond the GPU."""

    api_version: Literal["kvtier.dev/v1alpha1"] = Field(
        "kvtier.dev/v1alpha1", description="kvtier.dev/v1alpha1."
    )
    kind: Literal["KVCacheTier"] = Field("KVCacheTier", description="KVCacheTier.")
    metadata: Metadata = Field(description="Standard object metadata.")
    spec: Spec = Field(description="What is wanted.")
    status: Status | None = Field(
        None,
        description="What the operator last saw and did.",
        json_schema_extra={"default": {"conditions": [PENDING]}},
    )

    @property
    def planned_spec(self) -> Spec:
        """The spec with what is left out and follows from the resource's name."""
        spec, remote = self.spec, self.spec.tiers.remote
        if remote is None or remote.share_as is not None:
            return spec
        named = remote.model_copy(update={"share_as": f"{self.metadata.namespace}/{self.metadata.name}"})
        return spec.model_copy(update={"tiers": spec.tiers.model_copy(update={"remote": named})})

    @rule(
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= 48",
        NAME_MESSAGE,
    )
    def name_is_a_label(self) -> bool:
        """A Service carries the name with a suffix, so it must be a DNS label (RFC 1035) with room to spare."""
        return (
            NAME_PATTERN.fullmatch(self.metadata.name) is not None
            and len(self.metadata.name) <= MAX_NAME_LENGTH
        )

    def manifest(self) -> dict[str, Any]:
        """The resource as it would stand in YAML: only what was set, in camelCase."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)
