"""`spec.engine`: how vLLM runs."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kvtier_operator.api.base import ApiModel, rule
from kvtier_operator.api.formats.image_name import IMAGE_NAME_PATTERN
from kvtier_operator.api.formats.quantity import ByteQuantity
from kvtier_operator.api.spec.env import EnvVar
from kvtier_operator.api.spec.scheduling import (
    Affinity,
    EngineResources,
    NodeSelector,
    PodClaim,
    PodTemplate,
    PriorityClassName,
    Tolerations,
)


class Device(StrEnum):
    """What vLLM computes on."""

    CUDA = "cuda"
    CPU = "cpu"


class KVCacheDtype(StrEnum):
    """vLLM's --kv-cache-dtype, the names that both supported minors take (config/cache.py, CacheDType)."""

    AUTO = "auto"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FP8 = "fp8"
    FP8_E4M3 = "fp8_e4m3"
    FP8_E5M2 = "fp8_e5m2"
    FP8_INC = "fp8_inc"
    FP8_DS_MLA = "fp8_ds_mla"
    NVFP4_DS_MLA = "nvfp4_ds_mla"
    TURBOQUANT_K8V4 = "turboquant_k8v4"
    TURBOQUANT_4BIT_NC = "turboquant_4bit_nc"
    TURBOQUANT_K3V4_NC = "turboquant_k3v4_nc"
    TURBOQUANT_3BIT_NC = "turboquant_3bit_nc"
    ULTRAQUANT_4BIT = "ultraquant_4bit"
    INT4_PER_TOKEN_HEAD = "int4_per_token_head"  # noqa: S105 - a dtype of vLLM
    INT8_PER_TOKEN_HEAD = "int8_per_token_head"  # noqa: S105 - as above
    FP8_PER_TOKEN_HEAD = "fp8_per_token_head"  # noqa: S105 - as above
    NVFP4 = "nvfp4"
    NVFP4_4OVER6 = "nvfp4_4over6"


class EngineSpec(ApiModel):
    """The vLLM engine."""

    image: str | None = Field(
        None,
        description="Engine image; chosen by backend and device when empty.",
        min_length=1,
        max_length=512,
        pattern=IMAGE_NAME_PATTERN,
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
        description="Tokens in one KV block of the device cache (vLLM's --block-size). Empty: vLLM's own choice, on cuda 16 or what the model's attention and the GPU need, 128 on cpu.",
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
    resources: EngineResources = Field(
        default_factory=EngineResources,
        description="The engine's own compute resources, before the tiers: memory here is its working set without them. Devices go into the limits, whatever their kind, and are then all that a pod asks for; without any, cuda asks for one nvidia.com/gpu a rank.",
    )
    resource_claims: list[PodClaim] = Field(
        default_factory=list,
        description="Devices that each pod claims (dynamic resource allocation). With any, kvtier adds no nvidia.com/gpu; devices among the limits are asked for beside them.",
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    node_selector: NodeSelector = Field(default_factory=dict)
    tolerations: Tolerations = Field(default_factory=list)
    affinity: Affinity = None
    priority_class_name: PriorityClassName = None
    shm_size: ByteQuantity | None = Field(
        None, description="Size of /dev/shm; computed from backend and tiers when empty."
    )
    pod_template: PodTemplate = None

    @rule(
        "self.device != 'cpu' || (!has(self.gpuMemoryUtilization) && !has(self.gpuMemory))",
        "gpuMemory and gpuMemoryUtilization have no meaning on device cpu; leave them out",
    )
    def gpu_settings_need_a_gpu(self) -> bool:
        """Nothing that is written has no effect."""
        return self.device is not Device.CPU or (
            self.gpu_memory is None and self.gpu_memory_utilization is None
        )

    @rule(
        "!has(self.resources) || !has(self.resources.claims) || self.resources.claims.all(taken, "
        "has(self.resourceClaims) && self.resourceClaims.exists(claim, claim.name == taken.name))",
        "resources.claims takes from the pod's claims: write the claim into resourceClaims, by the same name",
        field=".resources.claims",
    )
    def claims_are_the_pods(self) -> bool:
        """Kubernetes' own rule for pods."""
        return {each.name for each in self.resources.claims} <= {each.name for each in self.resource_claims}
