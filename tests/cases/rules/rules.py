"""The CEL rules of the CRD: for each one something that it accepts and something that it refuses."""

from typing import Final

from tests.cases.kvcachetier import DISK
from tests.cases.rules.attach_rules import ATTACH_RULES
from tests.cases.rules.gateway_rules import GATEWAY_RULES
from tests.cases.rules.kept_rules import KEPT_RULES
from tests.cases.rules.model_rules import MODEL_RULES
from tests.cases.rules.remote_rules import REMOTE_RULES
from tests.cases.rules.rule_case import RuleCase
from tests.cases.rules.scaling_rules import SCALING_RULES

_TRACES: Final = "spec.observability.tracing"

RULES: Final = (
    RuleCase(
        "metadata.name must be a DNS label (a-z, 0-9, -, a letter first) of at most 48 characters: "
        "Services carry it",
        "",
        {"metadata.name": "a" * 48},
        {"metadata.name": "qwen3.32b"},
    ),
    *(
        RuleCase(
            "no collector is at an address of a pod's own machine, its link or a cloud's metadata; write "
            "that of its Service",
            f"{_TRACES}.endpoint",
            {_TRACES: {"endpoint": "http://otel-collector.monitoring:4317"}},
            {_TRACES: {"endpoint": f"http://{host}:4317"}},
        )
        for host in ("localhost", "169.254.169.254", "[fe80::1]")
    ),
    RuleCase(
        "only backend KVTier has layers wait for their part of a load; remove layeredLoads",
        "spec.tiers.cpu.layeredLoads",
        {"spec.tiers.cpu": {"capacity": "1Gi", "layeredLoads": False}},
        {"spec.backend": "Native", "spec.tiers.cpu": {"capacity": "1Gi", "layeredLoads": False}},
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
        "give either resourceClaimTemplateName or resourceClaimName",
        "spec.engine.resourceClaims[0]",
        {
            "spec.engine": {
                "resourceClaims": [
                    {"name": "gpus", "resourceClaimTemplateName": "two-h100"},
                    {"name": "nic", "resourceClaimName": "nic-0"},
                ]
            }
        },
        {"spec.engine": {"resourceClaims": [{"name": "gpus"}]}},
    ),
    RuleCase(
        "resources.claims takes from the pod's claims: write the claim into resourceClaims, by the same name",
        "spec.engine.resources.claims",
        {
            "spec.engine": {
                "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "two-h100"}],
                "resources": {"claims": [{"name": "gpus", "request": "gpu"}]},
            }
        },
        {
            "spec.engine": {
                "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "two-h100"}],
                "resources": {"claims": [{"name": "gpu"}]},
            }
        },
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
        "gpu, gpuMemory and gpuMemoryUtilization have no meaning on device cpu; leave them out",
        "spec.engine",
        {"spec.engine": {"device": "cpu", "kvCacheMemory": "4Gi"}},
        {"spec.engine": {"device": "cpu", "gpu": "h100"}},
    ),
    RuleCase(
        "gpu says how much memory it has; leave gpuMemory out, or gpu where the GPU has other memory",
        "spec.engine.gpuMemory",
        {"spec.engine": {"gpu": "h100", "gpuMemoryUtilization": 0.9}},
        {"spec.engine": {"gpu": "h100", "gpuMemory": "80Gi"}},
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
    RuleCase(
        "namespaces and ipBlocks are of the policy that enabled: false leaves out; keep one or the other",
        "spec.router.networkPolicy",
        {"spec.router.networkPolicy": {"enabled": True, "namespaces": ["proxies"]}},
        {"spec.router.networkPolicy": {"enabled": False, "namespaces": ["proxies"]}},
    ),
    RuleCase(
        "must be an address block such as 10.129.0.0/23 or 2001:db8::/64",
        "spec.router.networkPolicy.ipBlocks[1]",
        {"spec.router.networkPolicy": {"ipBlocks": ["10.129.0.7/23", "2001:db8::/64", "::1.2.3.4/128"]}},
        {"spec.router.networkPolicy": {"ipBlocks": ["10.0.0.0/8", "10.0.0.0/33"]}},
    ),
    RuleCase(
        "must be a quantity of bytes from 64Ki to 1Gi, such as 64Mi",
        "spec.router.maxBodySize",
        {"spec.router": {"flavor": "builtin", "maxBodySize": "1Gi"}},
        {"spec.router": {"flavor": "builtin", "maxBodySize": "1.1Gi"}},
    ),
    RuleCase(
        "must be a quantity of bytes from 64Ki to 1Gi, such as 64Mi",
        "spec.router.maxBodySize",
        {"spec.router": {"flavor": "builtin", "maxBodySize": 65536}},
        {"spec.router": {"flavor": "builtin", "maxBodySize": 65535}},
    ),
    RuleCase(
        "only kvtier's own picker has a bound for bodies; set flavor to builtin or leave maxBodySize out",
        "spec.router.maxBodySize",
        {"spec.router": {"flavor": "builtin", "maxBodySize": "64Mi"}},
        {"spec.router": {"flavor": "llm-d", "maxBodySize": "64Mi"}},
    ),
    RuleCase(
        "only kvtier's own picker tells clients which engine served them; set flavor to builtin or leave "
        "exposeEndpoint out",
        "spec.router.exposeEndpoint",
        {"spec.router": {"flavor": "builtin", "exposeEndpoint": True}},
        {"spec.router": {"flavor": "llm-d", "exposeEndpoint": True}},
    ),
    *ATTACH_RULES,
    *GATEWAY_RULES,
    *KEPT_RULES,
    *MODEL_RULES,
    *REMOTE_RULES,
    *SCALING_RULES,
)
