"""KVCacheTiers with fields that there are not, or without fields that there have to be."""

from typing import Final

from tests.cases.kvcachetier import ABSENT, DISK
from tests.cases.refused.refused_case import Refused

REFUSED_FIELDS: Final = {
    "unknown field, misspelt": Refused(
        {"spec.tiers.cpu.capacty": "1Gi"}, "spec.tiers.cpu.capacty: unknown field; did you mean capacity?"
    ),
    "unknown field, snake case": Refused(
        {"spec.engine.tensor_parallel_size": 2},
        "spec.engine.tensor_parallel_size: unknown field; did you mean tensorParallelSize?",
    ),
    "unknown field, elsewhere": Refused(
        {"spec.hugepages": {"policy": "Prefer"}},
        "spec.hugepages: unknown field here; it belongs at spec.tiers.cpu.hugepages",
    ),
    "unknown field, too deep": Refused(
        {"spec.engine.replicas": 2}, "spec.engine.replicas: unknown field here; it belongs at spec.replicas"
    ),
    "unknown field, of the engines": Refused(
        {"spec.router.env": []},
        "spec.router.env: unknown field here; there is spec.model.fetcher.env and spec.engine.env; "
        "the fields here are flavor, version, image, replicas, kvEvents, maxBodySize, exposeEndpoint, "
        "hints, shareFrom, weights, failureMode, resources, nodeSelector, tolerations, affinity, "
        "priorityClassName, podTemplate, gateway, networkPolicy",
    ),
    "unknown field, of the other tier": Refused(
        {"spec.tiers.cpu.directIO": True},
        "spec.tiers.cpu.directIO: unknown field here; there is spec.tiers.disk.directIO; the fields here are "
        "capacity, expectedPrefixTokens, hugepages, memlock, layeredLoads, retained",
    ),
    "unknown field, nowhere": Refused(
        {"spec.observability.xyzzy": True},
        "spec.observability.xyzzy: unknown field; the fields here are serviceMonitor, "
        "prometheusRule, dashboard, labels, intervalSeconds, tracing",
    ),
    "missing model": Refused(
        {"spec.model": ABSENT},
        "spec.model: name the model that the engines serve; only with attach may it be left out",
    ),
    "missing name of the model": Refused(
        {"spec.model": {}},
        "spec.model.name: is required (Model as vLLM takes it: a Hugging Face id such as "
        "Qwen/Qwen3-32B, a folder in the engine's image, in spec.model.volume or on this machine, or a "
        "bucket's s3://, gs:// or az://, whose weights vLLM streams)",
    ),
    "no tier": Refused(
        {"spec.tiers": {}}, "spec.tiers.cpu: is required (CPU memory; give at least its capacity)"
    ),
    "a disk tier alone": Refused(
        {"spec.tiers": {"disk": DISK}},
        "spec.tiers.cpu: is required (CPU memory; give at least its capacity)",
    ),
    "missing capacity": Refused(
        {"spec.tiers.cpu": {}},
        "spec.tiers.cpu.capacity: is required (Memory for the prefix cache, per engine pod, "
        "all ranks together)",
    ),
    "disk without volume": Refused(
        {"spec.tiers.disk": {"capacity": "1Ti"}},
        "spec.tiers.disk.volume: is required (Where this tier lives)",
    ),
    "missing spec": Refused({"spec": ABSENT}, "spec: is required (What is wanted)"),
}
