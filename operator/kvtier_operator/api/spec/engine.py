"""`spec.engine` and `spec.autoscaling`: how vLLM runs, and how many engines there are."""

import re
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from kvtier_operator.api import former
from kvtier_operator.api.base import ApiModel, rule
from kvtier_operator.api.formats import (
    FORBIDDEN_URL,
    HTTP_URL_PATTERN,
    IMAGE_NAME_PATTERN,
    Duration,
    seconds_of,
)
from kvtier_operator.api.quantity import ByteQuantity
from kvtier_operator.api.spec.command_line import CommandLine
from kvtier_operator.api.spec.gpu import LARGE_PAGE_BYTES, SMALL_PAGE_BYTES, Architecture, Gpu
from kvtier_operator.api.spec.pod import (
    Affinity,
    EngineResources,
    EnvVar,
    NodeSelector,
    PodClaim,
    PodTemplate,
    PriorityClassName,
    Tolerations,
)
from kvtier_operator.api.spec.prometheus import PrometheusAccess

MOST_REPLICAS: Final = 10000
_MOST_PERCENT: Final = 99
_MOST_WARM_START_S: Final = 600
MOST_STABILIZATION_S: Final = 3600
"""Of a HorizontalPodAutoscaler (k8s.io/kubernetes, pkg/apis/autoscaling/validation)."""


class ScalingTarget(StrEnum):
    """What the number of engines follows."""

    QUEUE = "queue"
    KV_CACHE_UTILIZATION = "kvCacheUtilization"
    HIT_RATE = "hitRate"


class Autoscaling(ApiModel):
    """An autoscaler for the engines: KEDA's ScaledObject, or else a HorizontalPodAutoscaler."""

    min_replicas: int = Field(1, description="Engine pods at least.", ge=1, le=MOST_REPLICAS)
    max_replicas: int = Field(description="Engine pods at most.", ge=1, le=MOST_REPLICAS)
    target: ScalingTarget = Field(
        ScalingTarget.QUEUE,
        description="What the number follows: queue (requests that wait), kvCacheUtilization (the device's cache in use) or hitRate (the share of prompt tokens that a tier holds, of engines whose tiers are full).",
    )
    target_value: int | None = Field(
        None,
        description="What an engine is to have on average, in the unit of target: with queue waiting requests (5 when empty), with kvCacheUtilization percent of its device's cache in use (80), with hitRate percent of prompt tokens found (50).",
        ge=1,
        le=MOST_REPLICAS,
    )
    scale_down_stabilization_seconds: int = Field(
        1800,
        description="How long fewer engines must have sufficed before one goes, with the prefix cache that it has.",
        ge=0,
        le=MOST_STABILIZATION_S,
    )
    prometheus_url: str | None = Field(
        None,
        description="Base URL of the Prometheus that scrapes the engines, for KEDA to ask, such as http://prometheus-operated.monitoring.svc:9090; without it a HorizontalPodAutoscaler is made.",
        max_length=2048,
        pattern=HTTP_URL_PATTERN,
    )

    prometheus: PrometheusAccess | None = Field(
        None, description="Credentials and what else the server at prometheusUrl wants; none when empty."
    )

    @rule(
        "self.minReplicas <= self.maxReplicas",
        "minReplicas is more than maxReplicas: lower it, or raise maxReplicas",
        field=".minReplicas",
    )
    def least_within_most(self) -> bool:
        """Kubernetes' own rule for a HorizontalPodAutoscaler, said before there is one."""
        return self.min_replicas <= self.max_replicas

    @rule(
        f"!has(self.prometheusUrl) || !self.prometheusUrl.matches(r'{FORBIDDEN_URL}')",
        "no Prometheus is at an address of KEDA's own machine, its link or a cloud's metadata; write that of its Service",
        field=".prometheusUrl",
    )
    def prometheus_is_elsewhere(self) -> bool:
        """KEDA would ask what nobody but its own machine may ask."""
        return self.prometheus_url is None or re.search(FORBIDDEN_URL, self.prometheus_url) is None

    @rule(
        "!has(self.prometheus) || has(self.prometheusUrl)",
        "prometheus says how prometheusUrl is asked: set that too",
        field=".prometheus",
    )
    def access_has_a_url(self) -> bool:
        """What nobody uses was meant otherwise."""
        return self.prometheus is None or self.prometheus_url is not None

    @rule(
        "!has(self.targetValue) || self.target == 'queue' || self.targetValue <= 99",
        "kvCacheUtilization and hitRate are percentages: write 1 to 99",
        field=".targetValue",
    )
    def percentages_below_a_hundred(self) -> bool:
        """All hits would be none to miss, which no number of engines brings about."""
        is_percentage = self.target is not ScalingTarget.QUEUE
        return self.target_value is None or not is_percentage or self.target_value <= _MOST_PERCENT


class Device(StrEnum):
    """What vLLM computes on."""

    GPU = former.GPU
    CPU = "cpu"


DeviceField = Annotated[
    Device, former.read_as_now(former.CUDA), Field(json_schema_extra=former.schema_of(former.CUDA))
]
"""A device as a resource has it, which may be by its former word."""


class RolloutStrategy(StrEnum):
    """How an engine's pod is replaced."""

    IN_PLACE = "InPlace"
    SURGE = "Surge"


class Rollout(ApiModel):
    """How engines are replaced when their pods change."""

    strategy: RolloutStrategy = Field(
        RolloutStrategy.IN_PLACE,
        description="InPlace replaces one engine at a time in the room that the old one leaves: one is missing while it starts, and of a single one nobody serves meanwhile. Surge starts one more first, for which nodes need room, and takes the old one away once that is ready.",
    )

    warm_start: Duration | None = Field(
        None,
        description="How long a start may take to bring what was used last from the disk or the remote tier back into memory, before the engine serves; 0s for not at all. Empty: 10s where there is such a tier.",
    )

    @rule(
        "!has(self.warmStart) || duration(self.warmStart) <= duration('10m')",
        "an engine that is started waits for more than 10m: write less",
        field=".warmStart",
    )
    def start_ends(self) -> bool:
        """What is not there by then is loaded when it is asked for."""
        return self.warm_start is None or seconds_of(self.warm_start) <= _MOST_WARM_START_S

    @property
    def surplus_pods(self) -> int:
        """Engines beside those that are asked for, while they are replaced."""
        return 1 if self.strategy is RolloutStrategy.SURGE else 0


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
        description="Image with vLLM in it, unmodified; chosen by backend and device when empty.",
        min_length=1,
        max_length=512,
        pattern=IMAGE_NAME_PATTERN,
    )
    device: DeviceField = Field(
        Device.GPU,
        description="What vLLM computes on: gpu, of whichever maker, or cpu. Backends are made for NVIDIA's and AMD's GPUs; a plan with another accelerator warns.",
    )
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
        description="Tokens in one KV block of the device cache (vLLM's --block-size). Empty: vLLM's own choice, on a GPU 16 or what the model's attention and the GPU need, 128 on cpu.",
        ge=1,
        le=1024,
    )
    gpu_memory_utilization: float | None = Field(
        None,
        description="Share of the GPU's memory vLLM may use (vLLM's --gpu-memory-utilization; vLLM's default 0.92).",
        gt=0,
        le=1,
    )
    gpu: Gpu | None = Field(
        None,
        description="The GPU by name: its memory, as drivers report it, and the speeds of its maker's data sheet are planned with until an engine reports its own. It also says which blocks kernels take.",
    )
    gpu_memory: ByteQuantity | None = Field(
        None,
        description="Memory of one GPU in place of its name, for one that gpu has no name of, or a MIG slice: what the driver reports.",
    )
    kv_cache_memory: ByteQuantity | None = Field(
        None,
        description="Size of the device's own KV cache, per rank. Empty: on a GPU what gpuMemoryUtilization leaves, on cpu 4Gi.",
    )
    kv_cache_dtype: KVCacheDtype = Field(
        KVCacheDtype.AUTO, description="Element type of the KV cache (vLLM's --kv-cache-dtype)."
    )
    port: int = Field(8000, description="Port of the OpenAI-compatible server.", ge=1, le=65535)
    drain_seconds: int = Field(
        120,
        description="How long requests under way may take when their pod has to go (vLLM's --shutdown-timeout); what takes longer is cut off. The pods' grace periods follow, the picker's too.",
        ge=0,
        le=86400,
    )
    rollout: Rollout = Field(
        default_factory=Rollout, description="How engines are replaced when their pods change."
    )
    extra_args: CommandLine = Field(
        default_factory=CommandLine,
        description="Further vLLM arguments, last on the command line. Arguments that kvtier computes are refused here.",
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
        description="The engine's own compute resources, before the tiers: memory here is its working set without them. Devices go into the limits, whatever their kind, and are then all that a pod asks for; without any, device gpu asks for one nvidia.com/gpu a rank, or amd.com/gpu with a gpu of AMD's.",
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
        "self.device != 'cpu' || (!has(self.gpuMemoryUtilization) && !has(self.gpuMemory) && !has(self.gpu))",
        "gpu, gpuMemory and gpuMemoryUtilization have no meaning on device cpu; leave them out",
    )
    def gpu_settings_need_a_gpu(self) -> bool:
        """Nothing that is written has no effect."""
        return self.device is not Device.CPU or (
            self.gpu is None and self.gpu_memory is None and self.gpu_memory_utilization is None
        )

    @rule(
        "!has(self.gpu) || !has(self.gpuMemory)",
        "gpu says how much memory it has; leave gpuMemory out, or gpu where the GPU has other memory",
        field=".gpuMemory",
    )
    def one_says_the_gpus_memory(self) -> bool:
        """Of two that differ one would be ignored."""
        return self.gpu is None or self.gpu_memory is None

    @property
    def ranks(self) -> int:
        """Of one pod, all engines together."""
        return self.tensor_parallel_size * self.data_parallel_size

    @property
    def gpu_bytes(self) -> int | None:
        """Memory of one GPU; None where nothing tells it."""
        if self.gpu is not None:
            return self.gpu.memory_bytes
        return self.gpu_memory.bytes if self.gpu_memory else None

    @property
    def host_page_bytes(self) -> int:
        """Ordinary pages of the kernel that the engine runs on, as far as its GPU tells."""
        return LARGE_PAGE_BYTES if self.gpu and self.gpu.on_grace else SMALL_PAGE_BYTES

    @property
    def architecture(self) -> Architecture | None:
        """Of an NVIDIA GPU that is named; None where the plan has to suit all of them."""
        return self.gpu.architecture if self.gpu else None

    @rule(
        "!has(self.resources) || !has(self.resources.claims) || self.resources.claims.all(taken, "
        "has(self.resourceClaims) && self.resourceClaims.exists(claim, claim.name == taken.name))",
        "resources.claims takes from the pod's claims: write the claim into resourceClaims, by the same name",
        field=".resources.claims",
    )
    def claims_are_the_pods(self) -> bool:
        """Kubernetes' own rule for pods."""
        return {claim.name for claim in self.resources.claims} <= {
            claim.name for claim in self.resource_claims
        }
