"""`spec.engine`: how vLLM runs."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from kvtier_operator.api.base import ApiModel, rule
from kvtier_operator.api.quantity import ByteQuantity
from kvtier_operator.api.scheduling import (
    Affinity,
    NodeSelector,
    PriorityClassName,
    ResourceRequirements,
    Tolerations,
)


class Device(StrEnum):
    """What vLLM computes on."""

    CUDA = "cuda"
    CPU = "cpu"


class KVCacheDtype(StrEnum):
    """vLLM's --kv-cache-dtype."""

    AUTO = "auto"
    BFLOAT16 = "bfloat16"
    FP8 = "fp8"
    FP8_E4M3 = "fp8_e4m3"
    FP8_E5M2 = "fp8_e5m2"


class EnvVar(ApiModel):
    """An environment variable of the engine's container."""

    name: str = Field(
        description="Name of the variable.",
        min_length=1,
        max_length=256,
        pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$",
    )
    value: str | None = Field(
        None, description="Value of the variable; quote numbers and yes, no, on, off.", max_length=32768
    )
    value_from: dict[str, Any] | None = Field(
        None,
        description="Source of the value, as in a pod: secretKeyRef, configMapKeyRef, fieldRef or resourceFieldRef.",
        min_length=1,
        max_length=1,
    )

    @rule("!(has(self.value) && has(self.valueFrom))", "give value or valueFrom, not both")
    def has_one_source(self) -> bool:
        """A container's variable has a value or a source of one."""
        return self.value is None or self.value_from is None

    @rule(
        "self.name != 'LMCACHE_USE_EXPERIMENTAL'",
        "LMCACHE_USE_EXPERIMENTAL does nothing: LMCache and vLLM removed it; leave it out",
        field=".name",
    )
    def is_not_removed(self) -> bool:
        """A switch that is gone only misleads."""
        return self.name != "LMCACHE_USE_EXPERIMENTAL"


class EngineSpec(ApiModel):
    """The vLLM engine."""

    image: str | None = Field(
        None,
        description="Engine image; chosen by backend and device when empty.",
        min_length=1,
        max_length=512,
    )
    device: Device = Field(Device.CUDA, description="What vLLM computes on.")
    tensor_parallel_size: int = Field(
        1, description="Ranks that share each layer (vLLM's --tensor-parallel-size).", ge=1, le=64
    )
    data_parallel_size: int = Field(
        1, description="Engines in one pod (vLLM's --data-parallel-size).", ge=1, le=64
    )
    max_model_len: int | None = Field(
        None,
        description="Longest sequence in tokens (vLLM's --max-model-len); the model's own when empty.",
        ge=1,
        le=2**31 - 1,
    )
    block_size: int | None = Field(
        None,
        description="Tokens in one KV block of the device cache (vLLM's --block-size). Empty: vLLM's own choice, 16 on cuda and 128 on cpu.",
        ge=1,
        le=1024,
    )
    gpu_memory_utilization: float | None = Field(
        None,
        description="Share of the GPU's memory vLLM may use (vLLM's --gpu-memory-utilization; vLLM's default 0.92).",
        gt=0,
        le=1,
    )
    gpu_memory: ByteQuantity | None = Field(
        None, description="Memory of one GPU, to plan the GPU tier with where the nodes do not tell it."
    )
    kv_cache_memory: ByteQuantity | None = Field(
        None,
        description="Size of the device's own KV cache, per rank. Empty: on cuda what gpuMemoryUtilization leaves, on cpu 4Gi.",
    )
    kv_cache_dtype: KVCacheDtype = Field(
        KVCacheDtype.AUTO, description="Element type of the KV cache (vLLM's --kv-cache-dtype)."
    )
    port: int = Field(8000, description="Port of the OpenAI-compatible server.", ge=1, le=65535)
    drain_seconds: int = Field(
        120,
        description="How long requests under way may take once their pod has to go (vLLM's --shutdown-timeout); what takes longer is cut off. The pods' grace periods follow, the picker's too.",
        ge=0,
        le=86400,
    )
    extra_args: list[Annotated[str, Field(max_length=4096)]] = Field(
        default_factory=list,
        description="Further vLLM arguments, last on the command line. Arguments that kvtier computes are refused here.",
        max_length=128,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    env: list[EnvVar] = Field(
        default_factory=list,
        description="Further environment variables of the engine's container.",
        max_length=128,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    resources: ResourceRequirements = Field(
        default_factory=ResourceRequirements,
        description="The engine's own compute resources, before the tiers: memory here is its working set without them. GPUs go into the limits.",
    )
    node_selector: NodeSelector = Field(default_factory=dict)
    tolerations: Tolerations = Field(default_factory=list)
    affinity: Affinity = None
    priority_class_name: PriorityClassName = None
    shm_size: ByteQuantity | None = Field(
        None, description="Size of /dev/shm; computed from backend and tiers when empty."
    )

    @rule(
        "self.device != 'cpu' || (!has(self.gpuMemoryUtilization) && !has(self.gpuMemory))",
        "gpuMemory and gpuMemoryUtilization have no meaning on device cpu; leave them out",
    )
    def gpu_settings_need_a_gpu(self) -> bool:
        """Nothing that is written has no effect."""
        return self.device is not Device.CPU or (
            self.gpu_memory is None and self.gpu_memory_utilization is None
        )
