"""The CEL rules of spec.attach: for each one something that it accepts and something that it refuses."""

from typing import Final

from tests.cases.kvcachetier import ABSENT
from tests.cases.rules.rule_case import RuleCase

ATTACH: Final = {"spec.attach": {"podSelector": {"matchLabels": {"app.kubernetes.io/name": "qwen"}}}}
_STORE: Final = {"capacity": "1Ti", "url": "redis://valkey:6379"}
_DISK: Final = {"capacity": "1Ti", "volume": {"ephemeral": {}}}
_DEFAULTS: Final = {
    "spec.engine": {"device": "gpu", "resources": {"limits": {}}, "env": []},
    "spec.router": {"weights": {"queue": 2}, "networkPolicy": {}},
    "spec.observability": {"dashboard": False},
}
"""What a resource may say, and the API server writes into it."""
ATTACH_RULES: Final = (
    RuleCase(
        "name the model that the engines serve; only with attach may it be left out",
        "spec.model",
        {**ATTACH, "spec.model": ABSENT},
        {"spec.model": ABSENT},
    ),
    RuleCase(
        "only backend KVTier goes into engines that others start; write it, or remove attach",
        "spec.backend",
        {**ATTACH, "spec.backend": "KVTier"},
        {**ATTACH, "spec.backend": "LMCache"},
    ),
    RuleCase(
        "with attach vLLM runs as its owner says, in their pod: remove engine",
        "spec.engine",
        {**ATTACH, **_DEFAULTS},
        {**ATTACH, "spec.engine": {"resources": {"limits": {"nvidia.com/gpu": 4}}}},
    ),
    RuleCase(
        "with attach the owner of the pods says how many there are: remove replicas and autoscaling",
        "spec.replicas",
        {**ATTACH, "spec.replicas": 1},
        {**ATTACH, "spec.autoscaling": {"maxReplicas": 2}},
    ),
    RuleCase(
        "with attach no picker is made: remove router",
        "spec.router",
        {**ATTACH, **_DEFAULTS},
        {**ATTACH, "spec.router": {"weights": {"queue": 3}}},
    ),
    RuleCase(
        "with attach no monitoring objects are made: remove observability",
        "spec.observability",
        {**ATTACH, **_DEFAULTS},
        {**ATTACH, "spec.observability": {"dashboard": True}},
    ),
    RuleCase(
        "pods that attach selects pull with Secrets of their own: remove imagePullSecrets",
        "spec.imagePullSecrets",
        {**ATTACH, "spec.imagePullSecrets": []},
        {**ATTACH, "spec.imagePullSecrets": [{"name": "registry"}]},
    ),
    RuleCase(
        "Require needs IPC_LOCK, and attach gives pods no rights: write Prefer, which locks what the pod may",
        "spec.tiers.cpu.memlock.policy",
        {**ATTACH, "spec.tiers.cpu.memlock": {"policy": "Prefer"}},
        {**ATTACH, "spec.tiers.cpu.memlock": {"policy": "Require"}},
    ),
    RuleCase(
        "attach gives each pod a disk that goes with it: write emptyDir or ephemeral",
        "spec.tiers.disk.volume",
        {**ATTACH, "spec.tiers.disk": _DISK},
        {**ATTACH, "spec.tiers.disk": {**_DISK, "volume": {"hostPath": {"path": "/mnt/nvme0"}}}},
    ),
    RuleCase(
        "pods that attach selects are given no Secrets: remove credentials, tls, macKey and managed",
        "spec.tiers.remote",
        {**ATTACH, "spec.tiers.remote": _STORE},
        {**ATTACH, "spec.tiers.remote": {**_STORE, "macKey": {"secretRef": {"name": "mac"}}}},
    ),
    RuleCase(
        "attach does not size the processes of Mooncake's clients: use a store of engine Redis",
        "spec.tiers.remote.engine",
        {**ATTACH, "spec.tiers.remote": {**_STORE, "engine": "Redis"}},
        {
            **ATTACH,
            "spec.tiers.remote": {"capacity": "1Ti", "url": "mooncake://master:50051", "engine": "Mooncake"},
        },
    ),
)
