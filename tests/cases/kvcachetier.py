"""KVCacheTiers for the tests of every part that reads them: a minimal one, and right ones made from it."""

import copy
from collections.abc import Mapping
from typing import Any, Final

Document = dict[str, Any]
ABSENT: Final = object()

MINIMAL: Final[Document] = {
    "apiVersion": "kvtier.dev/v1alpha1",
    "kind": "KVCacheTier",
    "metadata": {"name": "qwen3-32b"},
    "spec": {"model": {"name": "Qwen/Qwen3-32B"}, "tiers": {"cpu": {"capacity": "100Gi"}}},
}
DISK: Final[Document] = {"capacity": "1Ti", "volume": {"emptyDir": {}}}
REMOTE: Final[Document] = {"capacity": "1Ti", "url": "redis://cache.kv:6379"}


def document(changes: Mapping[str, object]) -> Document:
    """The minimal resource with some fields set, by path from the root; ABSENT takes a field away."""
    result = copy.deepcopy(MINIMAL)
    for path, value in changes.items():
        *parents, name = path.split(".")
        place = result
        for parent in parents:
            place = place.setdefault(parent, {})
        if value is ABSENT:
            del place[name]
        else:
            place[name] = copy.deepcopy(value)
    return result


# Right resources, beyond those that show what a rule accepts: name -> changes.
ACCEPTED: Final[dict[str, Mapping[str, object]]] = {
    "minimal": {},
    "capacity as a number": {"spec.tiers.cpu.capacity": 107374182400},
    "capacity with an exponent": {"spec.tiers.cpu.capacity": "1e9"},
    "capacity with a fraction": {"spec.tiers.cpu.capacity": "1.5Gi"},
    "capacity with a sign": {"spec.tiers.cpu.capacity": "+1Gi"},
    "less than a byte rounds up": {"spec.tiers.cpu.capacity": "1m"},
    "a null is a field that is not there": {
        "spec.engine": None,
        "spec.replicas": None,
        "spec.model.revision": None,
    },
    "scaled to nothing": {"spec.replicas": 0},
    "all fields of metadata": {
        "metadata.labels": {"a": "b"},
        "metadata.annotations": {"kvtier.dev/note": "x"},
    },
    "everything": {
        "spec.model.revision": "main",
        "spec.model.tokenSecretRef": {"name": "hf-token"},
        "spec.model.weights": "64Gi",
        "spec.replicas": 4,
        "spec.engine": {
            "image": "vllm/vllm-openai:v0.32.0",
            "device": "gpu",
            "tensorParallelSize": 2,
            "dataParallelSize": 1,
            "maxModelLen": 32768,
            "blockSize": 16,
            "gpuMemoryUtilization": 0.9,
            "gpuMemory": "80Gi",
            "kvCacheDtype": "fp8",
            "port": 8000,
            "extraArgs": ["--max-num-seqs=64"],
            "env": [{"name": "A", "value": "1"}, {"name": "B"}],
            "resources": {"requests": {"cpu": 8}, "limits": {"nvidia.com/gpu": 2}},
            "nodeSelector": {"kubernetes.io/arch": "amd64"},
            "tolerations": [{"key": "gpu", "value": "h100", "tolerationSeconds": 30}],
            "affinity": {"nodeAffinity": {"anything": [1, {"goes": True}]}},
            "shmSize": "16Gi",
        },
        "spec.tiers.cpu.hugepages": {"policy": "Require", "pageSize": "1Gi"},
        "spec.tiers.cpu.memlock": {"policy": "Never"},
        "spec.tiers.disk": {
            **DISK,
            "volume": {"ephemeral": {"storageClassName": "fast"}},
            "directIO": False,
            "writesPerHour": "200Gi",
        },
        "spec.tiers.remote": {
            **REMOTE,
            "engine": "Redis",
            "url": "rediss://a.kv.svc:6379,[2001:db8::1]:6380",
            "credentials": {"secretRef": {"name": "store"}},
            "tls": {"caSecretRef": {"name": "store-ca", "key": "root.pem"}},
            "macKey": {"secretRef": {"name": "store-mac", "key": "share.key"}},
            "bandwidth": "11600M",
            "writeBytesPerSecond": "500M",
            "ttlSeconds": 86400,
            "connections": 8,
            "shareAs": "team-a/qwen3-32b",
        },
        "spec.router": {
            "flavor": "gaie",
            "version": "1.4.0",
            "weights": {"diskPrefix": 1},
            "failureMode": "FailClose",
            "gateway": {"parentRef": {"name": "inference"}, "hostnames": ["a.example"], "provider": "istio"},
        },
        "spec.observability": {"serviceMonitor": True},
    },
}
