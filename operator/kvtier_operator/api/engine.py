"""`spec.engine`: how vLLM runs."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from kvtier_operator.api.base import ApiModel, cel, with_rules
from kvtier_operator.api.quantity import ByteQuantity


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

    model_config = with_rules(
        cel("!(has(self.value) && has(self.valueFrom))", "give value or valueFrom, not both"),
        cel(
            "self.name != 'LMCACHE_USE_EXPERIMENTAL'",
            "LMCACHE_USE_EXPERIMENTAL does nothing: LMCache and vLLM removed it; leave it out",
            field_path=".name",
        ),
    )

    name: str = Field(description="Name of the variable.", min_length=1, max_length=256)
    value: str | None = Field(None, description="Value of the variable.", max_length=32768)
    value_from: dict[str, Any] | None = Field(
        None,
        description="Source of the value, as in a pod (secretKeyRef, configMapKeyRef, fieldRef, resourceFieldRef).",
    )


class Toleration(ApiModel):
    """A taint the engine's pods tolerate, as in a pod."""

    key: str | None = Field(None, description="Taint key; empty matches all keys.")
    operator: str | None = Field(None, description="Exists or Equal (default).")
    value: str | None = Field(None, description="Taint value, with Equal.")
    effect: str | None = Field(
        None, description="NoSchedule, PreferNoSchedule or NoExecute; empty matches all effects."
    )
    toleration_seconds: int | None = Field(
        None, description="How long a NoExecute taint is tolerated, in seconds."
    )


class ResourceRequirements(ApiModel):
    """Compute resources of the engine's own, before the tiers; the planner adds what the tiers need."""

    requests: dict[str, str | int] = Field(
        default_factory=dict,
        description="Requests, as in a pod. Memory here is the engine's own working set, without the tiers.",
    )
    limits: dict[str, str | int] = Field(
        default_factory=dict, description="Limits, as in a pod. GPUs go here."
    )


class EngineSpec(ApiModel):
    """The vLLM engine."""

    model_config = with_rules(
        cel(
            "self.device != 'cpu' || (!has(self.gpuMemoryUtilization) && !has(self.gpuMemory))",
            "gpuMemory and gpuMemoryUtilization have no meaning on device cpu; use kvCacheMemory",
        ),
    )

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
    )
    block_size: int = Field(
        16, description="Tokens in one KV block of the device cache (vLLM's --block-size).", ge=1, le=1024
    )
    gpu_memory_utilization: float | None = Field(
        None,
        description="Share of the GPU's memory vLLM may use (vLLM's --gpu-memory-utilization; vLLM's default 0.9).",
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
    extra_args: list[str] = Field(
        default_factory=list,
        description="Further vLLM arguments, last on the command line. Arguments that kvtier computes are refused here.",
        max_length=128,
    )
    env: list[EnvVar] = Field(
        default_factory=list,
        description="Further environment variables of the engine's container.",
        max_length=128,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    resources: ResourceRequirements = Field(
        default_factory=ResourceRequirements,
        description="The engine's own compute resources, before the tiers.",
    )
    node_selector: dict[str, str] = Field(
        default_factory=dict, description="Labels a node must have to run an engine."
    )
    tolerations: list[Toleration] = Field(
        default_factory=list,
        description="Taints the engine's pods tolerate.",
        max_length=64,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    affinity: dict[str, Any] | None = Field(None, description="Affinity of the engine's pods, as in a pod.")
    shm_size: ByteQuantity | None = Field(
        None, description="Size of /dev/shm; computed from backend and tiers when empty."
    )
