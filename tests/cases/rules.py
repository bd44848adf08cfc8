"""The CEL rules of the CRD: for each one something that it accepts and something that it refuses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.cases.kvcachetier import DISK


@dataclass(frozen=True, slots=True)
class RuleCase:
    """One CEL rule: its message, where it is said, and changes that it accepts and refuses."""

    message: str
    field: str
    accepted: Mapping[str, object]
    refused: Mapping[str, object]


_GEOMETRY: Final = "spec.model.geometry"
RULES: Final = (
    RuleCase(
        "metadata.name must be a DNS label (a-z, 0-9, -, a letter first) of at most 48 characters: "
        "Services carry it",
        "",
        {"metadata.name": "a" * 48},
        {"metadata.name": "qwen3.32b"},
    ),
    RuleCase(
        "pageSize needs a policy: set hugepages.policy to Require or Prefer",
        "spec.tiers.cpu.hugepages.pageSize",
        {"spec.tiers.cpu.hugepages": {"policy": "Prefer", "pageSize": "2Mi"}},
        {"spec.tiers.cpu.hugepages": {"pageSize": "2Mi"}},
    ),
    RuleCase(
        "give exactly one of emptyDir, ephemeral, persistentVolumeClaim, hostPath",
        "spec.tiers.disk.volume",
        {"spec.tiers.disk": {"capacity": "1Ti", "volume": {"hostPath": {"path": "/mnt/nvme0"}}}},
        {"spec.tiers.disk": {"capacity": "1Ti", "volume": {"emptyDir": {}, "hostPath": {"path": "/mnt"}}}},
    ),
    RuleCase(
        "must be a quantity of bytes of more than 0 and at most 1Ei, such as 512Mi, 100Gi or 1T",
        "spec.tiers.cpu.capacity",
        {"spec.tiers.cpu.capacity": "1Ei"},
        {"spec.tiers.cpu.capacity": "100Gx"},
    ),
    RuleCase(
        "must be a quantity from 0 to 1Ei, such as 8, 500m or 100Gi",
        "spec.engine.resources.requests[cpu]",
        {
            "spec.engine.resources": {
                "requests": {"cpu": "500m", "memory": 1024},
                "limits": {"nvidia.com/gpu": 0},
            }
        },
        {"spec.engine.resources": {"requests": {"cpu": "-1"}}},
    ),
    RuleCase(
        "a request is more than the limit of the same name: raise the limit or lower the request",
        "spec.engine.resources.requests",
        {"spec.engine.resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"cpu": "1000m"}}},
        {"spec.engine.resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}},
    ),
    RuleCase(
        "a request is more than the limit of the same name: raise the limit or lower the request",
        "spec.router.resources.requests",
        {"spec.router.resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "1024Mi"}}},
        {"spec.router.resources": {"requests": {"memory": "1G"}, "limits": {"memory": 999999999}}},
    ),
    RuleCase(
        "must be a quantity from 0 to 1Ei, such as 8, 500m or 100Gi",
        "spec.engine.resources.limits[memory]",
        {"spec.engine.resources": {"limits": {"memory": "1Ei"}}},
        {"spec.engine.resources": {"limits": {"memory": "2Ei"}}},
    ),
    RuleCase(
        "only backend LMCache spreads a disk tier over several volumes; remove extraVolumes",
        "spec.tiers.disk.extraVolumes",
        {"spec.backend": "LMCache", "spec.tiers.disk": {**DISK, "extraVolumes": [{"emptyDir": {}}]}},
        {"spec.tiers.disk": {**DISK, "extraVolumes": [{"emptyDir": {}}]}},
    ),
    RuleCase(
        "must be a quantity of bytes of more than 0 and at most 1Ei, such as 200Gi; "
        "leave it out for no bound",
        "spec.tiers.disk.writesPerHour",
        {"spec.tiers.disk": {**DISK, "writesPerHour": 1}},
        {"spec.tiers.disk": {**DISK, "writesPerHour": "0Gi"}},
    ),
    RuleCase(
        "only backend KVTier bounds what is written to a disk tier; remove writesPerHour",
        "spec.tiers.disk.writesPerHour",
        {"spec.tiers.disk": {**DISK, "writesPerHour": "200Gi"}},
        {"spec.backend": "Native", "spec.tiers.disk": {**DISK, "writesPerHour": "200Gi"}},
    ),
    RuleCase(
        "give either kvBytesPerToken alone, or layers with the shape of one layer",
        _GEOMETRY,
        {_GEOMETRY: {"kvBytesPerToken": 262144}},
        {_GEOMETRY: {"kvHeads": 8, "headDim": 128}},
    ),
    RuleCase(
        "layers needs kvHeads and headDim (attention with KV heads) or kvLoraRank (MLA)",
        _GEOMETRY,
        {_GEOMETRY: {"layers": 61, "kvLoraRank": 512, "qkRopeHeadDim": 64}},
        {_GEOMETRY: {"layers": 61, "kvHeads": 8}},
    ),
    RuleCase(
        "kvBytesPerToken already holds every layer; leave the shape of the layers out",
        _GEOMETRY,
        {_GEOMETRY: {"kvBytesPerToken": 262144, "dtypeBytes": 2}},
        {_GEOMETRY: {"kvBytesPerToken": 262144, "kvHeads": 8}},
    ),
    RuleCase(
        "kvLoraRank (MLA) stands in place of kvHeads, headDim and valueHeadDim: give one or the other",
        _GEOMETRY,
        {_GEOMETRY: {"layers": 61, "kvLoraRank": 512}},
        {_GEOMETRY: {"layers": 61, "kvLoraRank": 512, "headDim": 128}},
    ),
    RuleCase(
        "qkRopeHeadDim belongs to MLA models: give kvLoraRank with it",
        f"{_GEOMETRY}.qkRopeHeadDim",
        {_GEOMETRY: {"layers": 61, "kvLoraRank": 512, "qkRopeHeadDim": 0}},
        {_GEOMETRY: {"layers": 61, "kvHeads": 8, "headDim": 128, "qkRopeHeadDim": 64}},
    ),
    RuleCase(
        "slidingWindow and slidingWindowLayers go together",
        _GEOMETRY,
        {
            _GEOMETRY: {
                "layers": 4,
                "kvHeads": 8,
                "headDim": 64,
                "slidingWindow": 128,
                "slidingWindowLayers": 2,
            }
        },
        {_GEOMETRY: {"layers": 4, "kvHeads": 8, "headDim": 64, "slidingWindow": 128}},
    ),
    RuleCase(
        "slidingWindowLayers counts some of layers, so it cannot be more than layers",
        f"{_GEOMETRY}.slidingWindowLayers",
        {
            _GEOMETRY: {
                "layers": 4,
                "kvHeads": 8,
                "headDim": 64,
                "slidingWindow": 128,
                "slidingWindowLayers": 4,
            }
        },
        {
            _GEOMETRY: {
                "layers": 4,
                "kvHeads": 8,
                "headDim": 64,
                "slidingWindow": 128,
                "slidingWindowLayers": 5,
            }
        },
    ),
    RuleCase(
        "linearLayers and stateBytesPerLayer go together",
        _GEOMETRY,
        {
            _GEOMETRY: {
                "layers": 4,
                "kvHeads": 8,
                "headDim": 64,
                "linearLayers": 8,
                "stateBytesPerLayer": 4096,
            }
        },
        {_GEOMETRY: {"layers": 4, "kvHeads": 8, "headDim": 64, "linearLayers": 8}},
    ),
    RuleCase(
        "gpuMemory and gpuMemoryUtilization have no meaning on device cpu; leave them out",
        "spec.engine",
        {"spec.engine": {"device": "cpu", "kvCacheMemory": "4Gi"}},
        {"spec.engine": {"device": "cpu", "gpuMemoryUtilization": 0.9}},
    ),
    RuleCase(
        "give value or valueFrom, not both",
        "spec.engine.env[0]",
        {"spec.engine.env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]},
        {
            "spec.engine.env": [
                {"name": "A", "value": "", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
            ]
        },
    ),
    RuleCase(
        "LMCACHE_USE_EXPERIMENTAL does nothing: LMCache and vLLM removed it; leave it out",
        "spec.engine.env[0].name",
        {"spec.engine.env": [{"name": "LMCACHE_LOG_LEVEL", "value": "INFO"}]},
        {"spec.engine.env": [{"name": "LMCACHE_USE_EXPERIMENTAL", "value": "True"}]},
    ),
    RuleCase(
        "a toleration without key must have operator Exists",
        "spec.engine.tolerations[0]",
        {"spec.engine.tolerations": [{"operator": "Exists"}]},
        {"spec.engine.tolerations": [{"value": "gpu"}]},
    ),
    RuleCase(
        "a toleration with operator Exists has no value",
        "spec.engine.tolerations[0]",
        {"spec.engine.tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]},
        {"spec.engine.tolerations": [{"key": "gpu", "operator": "Exists", "value": "true"}]},
    ),
    RuleCase(
        "at least one weight must be more than 0",
        "spec.router.weights",
        {"spec.router.weights": {"queue": 0, "kvCacheUtilization": 0, "gpuPrefix": 0}},
        {"spec.router.weights": {"queue": 0, "kvCacheUtilization": 0, "gpuPrefix": 0, "cpuPrefix": 0}},
    ),
    RuleCase(
        "kvtier's own picker runs once: two would each know half of what the engines hold, and one that "
        "fails is passed by (failureMode); set replicas to 1",
        "spec.router.replicas",
        {"spec.router": {"flavor": "llm-d", "replicas": 2}},
        {"spec.router": {"flavor": "builtin", "replicas": 2}},
    ),
    RuleCase(
        "only kvtier's own picker is configured for KV events; set flavor to builtin or leave kvEvents out",
        "spec.router.kvEvents",
        {"spec.router": {"flavor": "builtin", "kvEvents": True}},
        {"spec.router": {"flavor": "llm-d", "kvEvents": True}},
    ),
)
