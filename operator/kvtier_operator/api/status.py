"""`status`: what was planned, what was observed, and whether it works."""

from enum import StrEnum

from pydantic import ConfigDict, Field

from kvtier_operator.api.base import ApiModel
from kvtier_operator.api.spec.backend import TELLING_OF_TIERS, one_of


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
    block_tokens: int | None = Field(
        None,
        description="Tokens of one KV block, as an engine says. GPU tier only.",
        json_schema_extra={"format": "int64"},
    )
    pinned_bytes: int | None = Field(
        None,
        description=f"Bytes locked in memory, on a GPU page-locked for DMA, as an engine says. CPU tier of {one_of(TELLING_OF_TIERS)}.",
        json_schema_extra={"format": "int64"},
    )
    pays: bool | None = Field(
        None,
        description=f"Whether reading is sooner than computing again, as an engine has measured. Disk tier of {one_of(TELLING_OF_TIERS)}.",
    )


class TiersStatus(StatusModel):
    """All tiers' sizes."""

    gpu: TierStatus | None = Field(None, description="The device's own KV cache.")
    cpu: TierStatus | None = Field(None, description="CPU memory.")
    disk: TierStatus | None = Field(None, description="Local disk.")


class RouterEntries(StatusModel):
    """LRU capacities of the prefix scorers, per engine pod."""

    gpu_prefix: int | None = Field(
        None, description="Entries of the GPU prefix scorer; empty: taken from the engine's metrics."
    )
    cpu_prefix: int | None = Field(None, description="Entries of the CPU prefix scorer.")
    disk_prefix: int | None = Field(None, description="Entries of the disk prefix scorer.")


class RouterStatus(StatusModel):
    """The endpoint picker's configuration."""

    entries: RouterEntries = Field(default_factory=RouterEntries, description="LRU capacities in force.")
    tokens_per_entry: int | None = Field(
        None, description="Tokens one entry stands for in this flavour and version."
    )
    config_hash: str | None = Field(None, description="Hash of the picker's configuration.")
    url: str | None = Field(
        None,
        description="Base URL for clients in the cluster, with gateway provider standalone, such as http://qwen3-32b-gateway.default.svc/v1.",
    )


class ConditionStatus(StrEnum):
    """Kubernetes' three-valued truth."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(StatusModel):
    """One condition, as metav1.Condition."""

    type: str = Field(
        description="Accepted, BudgetFits, NodesFit, EnginesReady, RouterReady, AutoscalerReady or Ready.",
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
    conditions: list[Condition] = Field(
        default_factory=list,
        description="Accepted, BudgetFits, NodesFit, EnginesReady, RouterReady, Ready; AutoscalerReady with spec.autoscaling.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
