"""Engine pods as their owners write them, and the KVCacheTier that selects them."""

from typing import Any, Final

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.resource import GROUP, VERSION
from kvtier_operator.planning.attach.plan import AttachPlan, plan_attach
from kvtier_operator.planning.observed import Observed

Document = dict[str, Any]
LABELS: Final = {"app.kubernetes.io/name": "chat", "llm-d.ai/role": "prefill"}
CONTAINER: Final = "main"
_IMAGE: Final = "vllm/vllm-openai:v0.33.0"
_RESTRICTED: Final = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "runAsUser": 2000,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def tier(name: str = "chat", tiers: Document | None = None, **attach: object) -> Document:
    """A KVCacheTier with spec.attach, and these tiers."""
    chosen = {"podSelector": {"matchLabels": LABELS}, "container": CONTAINER, **attach}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "KVCacheTier",
        "metadata": {"name": name},
        "spec": {
            "tiers": {"cpu": {"capacity": "100Gi"}, **(tiers or {})},
            "attach": chosen,
        },
    }


def pod(
    *, labels: dict[str, str] | None = None, spec: Document | None = None, **container: object
) -> Document:
    """A pod that any namespace admits; `container` and `spec` are added to it."""
    main = {
        "name": CONTAINER,
        "image": "vllm/vllm-openai:v0.33.0",
        "securityContext": _RESTRICTED,
        **container,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "chat-", "labels": LABELS if labels is None else labels},
        "spec": {"containers": [main], **(spec or {})},
    }


def memory(requested: str, limit: str = "") -> Document:
    """Resources of a container."""
    limits = {"limits": {"cpu": "1", "memory": limit}} if limit else {}
    return {"requests": {"cpu": "1", "memory": requested}, **limits}


def planned(document: Document) -> AttachPlan:
    """What an operator would publish of it."""
    return plan_attach(parse_resource(document, document["metadata"]["name"]), Observed())


_SHELL: Final = """
set -eu
eval "exec vllm serve /mnt/models --port 8000 ${VLLM_ADDITIONAL_ARGS:-} $@"
"""
_PROXY: Final = {
    "name": "routing-proxy",
    "image": "ghcr.io/llm-d/routing-sidecar:1",
    "restartPolicy": "Always",
    "securityContext": _RESTRICTED,
    "resources": {"requests": {"memory": "128Mi"}},
}
SHAPES: Final[dict[str, Document]] = {
    "vllm serve": pod(command=["vllm", "serve"], args=["Qwen/Qwen3-32B"], resources=memory("64Gi", "64Gi")),
    "image's own": pod(args=["--model", "Qwen/Qwen3-32B"], resources=memory("64Gi")),
    "sh -c": pod(command=["sh", "-c", "vllm serve Qwen/Qwen3-32B"], env=[{"name": "HOME", "value": "/h"}]),
    "bash -c eval": pod(command=["/bin/bash", "-c", _SHELL], args=["--"], resources=memory("8Gi", "16Gi")),
    "python -m": pod(command=["python3", "-m", "vllm.entrypoints.openai.api_server"]),
    "best effort": pod(resources={"limits": {"nvidia.com/gpu": "2"}, "requests": {"memory": "0"}}),
    "search path": pod(env=[{"name": "A", "value": "b"}, {"name": "PYTHONPATH", "value": "/theirs:/more"}]),
    "empty search path": pod(env=[{"name": "PYTHONPATH"}]),
    "plug-ins": pod(
        env=[{"name": "VLLM_PLUGINS", "value": "lora"}, {"name": "NUMBA_CACHE_DIR", "value": "/n"}]
    ),
    "plug-ins with ours": pod(env=[{"name": "VLLM_PLUGINS", "value": "lora,kvtier"}]),
    "plug-ins with a space": pod(env=[{"name": "VLLM_PLUGINS", "value": "lora, kvtier"}]),
    "our path, spelled otherwise": pod(
        spec={"volumes": [{"name": "own", "emptyDir": {}}]},
        volumeMounts=[{"name": "own", "mountPath": "/var/./lib//kvtier/connector/."}],
    ),
    "our path, a device": pod(
        spec={"volumes": [{"name": "own", "persistentVolumeClaim": {"claimName": "own"}}]},
        volumeDevices=[{"name": "own", "devicePath": "/var/lib/kvtier/connector"}],
    ),
    "variables from elsewhere": pod(envFrom=[{"secretRef": {"name": "tokens", "optional": True}}]),
    "search path beside them": pod(
        env=[{"name": "PYTHONPATH", "value": "/theirs"}], envFrom=[{"configMapRef": {"name": "paths"}}]
    ),
    "fractions of a byte": pod(resources=memory("500m", "1.1Gi")),
    "sidecar first": pod(spec={"initContainers": [_PROXY]}, resources=memory("64Gi", "64Gi")),
    "of a GPU": pod(
        name="engine",
        resources={"limits": {"nvidia.com/gpu": "2", "memory": "64Gi"}},
        spec={"securityContext": {"runAsUser": 2000, "fsGroup": 2000, "runAsNonRoot": True}},
    ),
    "disk of its own": pod(
        resources={"requests": {"ephemeral-storage": "10Gi"}, "limits": {"memory": "64Gi"}},
        spec={"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "20Gi"}}]},
        volumeMounts=[{"name": "shm", "mountPath": "/shared"}],
    ),
    "huge pages of its own": pod(
        resources={"limits": {"memory": "64Gi", "cpu": "8", "hugepages-2Mi": "1Gi"}},
    ),
}
"""As charts, controllers and people write them: see the docs of KServe, llm-d and the production stack."""
TIERS: Final[dict[str, Document]] = {
    "memory": {},
    "huge pages": {"cpu": {"capacity": "100Gi", "hugepages": {"policy": "Require"}}},
    "disk of the node": {"disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}},
    "disk of a class": {"disk": {"capacity": "1Ti", "volume": {"ephemeral": {"storageClassName": "local"}}}},
}
