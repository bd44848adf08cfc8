"""Engine pods as their owners write them, and the KVCacheTier that selects them."""

from typing import Any, Final

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.resource import GROUP, VERSION
from kvtier_operator.planning.attach.plan import AttachPlan, plan_attach
from kvtier_operator.planning.observed import Observed

Document = dict[str, Any]
LABELS: Final = {"app.kubernetes.io/name": "chat", "llm-d.ai/role": "prefill"}
CONTAINER: Final = "main"
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
_NIXL: Final = ("--kv-transfer-config", '{"kv_connector":"NixlConnector","kv_role":"kv_both"}')
_CACHING: Final = "--enable-prefix-caching"
_POD_IP: Final = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
_AMOUNTS: Final = {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "1"}
_GUARANTEED: Final = {"requests": _AMOUNTS, "limits": _AMOUNTS}
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
    "modelservice, decode": pod(
        name="vllm",
        command=["vllm", "serve"],
        args=["Qwen/Qwen3-32B", "--port", "8200", "--served-model-name", "Qwen/Qwen3-32B", *_NIXL],
        env=[_POD_IP, {"name": "DP_SIZE", "value": "1"}, {"name": "HF_HOME", "value": "/model-cache"}],
        ports=[{"containerPort": 8200, "protocol": "TCP"}, {"containerPort": 5557, "protocol": "TCP"}],
        resources=_GUARANTEED,
        volumeMounts=[{"name": "model-storage", "mountPath": "/model-cache"}],
        labels={**LABELS, "llm-d.ai/inference-serving": "true", "llm-d.ai/model": "qwen"},
        spec={
            "initContainers": [_PROXY],
            "volumes": [
                {"name": "metrics-volume", "emptyDir": {}},
                {"name": "model-storage", "emptyDir": {"sizeLimit": "20Gi"}},
            ],
        },
    ),
    "production stack": pod(
        name="vllm",
        command=["vllm", "serve", "Qwen/Qwen3-32B", "--port", "8000", _CACHING],
        env=[{"name": "HF_HOME", "value": "/data"}, _POD_IP, {"name": "PYTHONHASHSEED", "value": "123"}],
        envFrom=[{"configMapRef": {"name": "stack-configs", "optional": True}}],
        resources={"requests": {"cpu": "6", "memory": "16Gi"}, "limits": {"nvidia.com/gpu": "2"}},
        volumeMounts=[{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - as the chart has it
        labels={**LABELS, "model": "qwen", "helm-release-name": "stack"},
        spec={
            "hostname": "stack-qwen",
            "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "20Gi"}}],
        },
    ),
    "AIBrix, prefill": pod(
        name="prefill",
        command=["sh", "-c"],
        args=["exec vllm serve --model Qwen/Qwen3-32B --enable-prefix-caching"],
        env=[{"name": "VLLM_ENABLE_V1_MULTIPROCESSING", "value": "0"}],
        resources=_GUARANTEED,
        labels={**LABELS, "role-name": "prefill", "model.aibrix.ai/engine": "vllm"},
    ),
    "Dynamo, prefill worker": pod(
        name="main",
        command=["python3", "-m", "dynamo.vllm"],
        args=["--model", "Qwen/Qwen3-32B", "--is-prefill-worker"],
        env=[_POD_IP, {"name": "DYN_SYSTEM_PORT", "value": "9090"}],
        envFrom=[{"secretRef": {"name": "hf-token-secret", "optional": True}}],
        ports=[{"name": "system", "containerPort": 9090}],
        resources=_GUARANTEED,
        labels={**LABELS, "nvidia.com/dynamo-component-type": "worker"},
        spec={"terminationGracePeriodSeconds": 60},
    ),
    "huge pages of its own": pod(
        resources={"limits": {"memory": "64Gi", "cpu": "8", "hugepages-2Mi": "1Gi"}},
    ),
}
"""As people, charts and controllers write them: KServe, llm-d, the production stack, AIBrix, Dynamo."""
TIERS: Final[dict[str, Document]] = {
    "memory": {},
    "huge pages": {"cpu": {"capacity": "100Gi", "hugepages": {"policy": "Require"}}},
    "disk of the node": {"disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}},
    "disk of a class": {"disk": {"capacity": "1Ti", "volume": {"ephemeral": {"storageClassName": "local"}}}},
}
