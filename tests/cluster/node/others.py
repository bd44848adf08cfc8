"""A vLLM workload that somebody else owns, with nothing of kvtier in it, and the tier for its pods."""

import json
from typing import Any, Final

from tests.cluster.harness.images.engines import RandomModel, model_environment
from tests.cluster.harness.operator.installed import Site
from tests.shared.waiting import eventually

from kvtier_operator.planning.images import PUBLISHED, ImageName

Document = dict[str, Any]
NAMESPACE: Final = "theirs"
NAME: Final = "chat"
PORT: Final = 8000
_START_S: Final = 900.0
_LABELS: Final = {"app": NAME}
_ENVIRONMENT: Final = {
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    # its user has no entry in the image
    "HOME": "/tmp",  # noqa: S108 - of the container's own
    "USER": "nobody",
}
_RESTRICTED: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 2000,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def arguments(model: RandomModel, *, tokens: int, cache_bytes: int) -> list[str]:
    """Of `vllm serve`, the model first; nothing in it speaks of a tier."""
    options = {
        "--port": PORT,
        "--block-size": 32,
        "--max-model-len": tokens,
        "--kv-cache-memory-bytes": cache_bytes,
        "--dtype": "float32",
    }
    return [model.name, *(str(word) for option in options.items() for word in option), "--enforce-eager"]


def workload(kind: str, command: list[str], memory: str = "4Gi") -> Document:
    """What its owner applies; it runs as nobody in particular."""
    variables = [{"name": name, "value": value} for name, value in _ENVIRONMENT.items()]
    main = {
        "name": "main",
        "image": PUBLISHED[ImageName.VLLM_CPU],
        "command": command,
        "env": [*model_environment(), *variables],
        "ports": [{"containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": PORT}, "periodSeconds": 2},
        "resources": {"requests": {"memory": memory}, "limits": {"memory": memory}},
        "securityContext": _RESTRICTED,
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - the kernel's own name
    }
    # ranks speak to each other through it, and a container's own has 64 MiB
    shared = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}
    more = {"serviceName": NAME} if kind == "StatefulSet" else {"strategy": {"type": "Recreate"}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": _LABELS},
            "template": {
                "metadata": {"labels": _LABELS},
                "spec": {"containers": [main], "volumes": [shared]},
            },
            **more,
        },
    }


def tier(capacity: str) -> Document:
    """The one resource that a platform team adds."""
    return {
        "apiVersion": "kvtier.dev/v1alpha1",
        "kind": "KVCacheTier",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "attach": {"podSelector": {"matchLabels": _LABELS}},
            "tiers": {"cpu": {"capacity": capacity}},
        },
    }


def make_namespace(site: Site) -> None:
    """One where the least is admitted, and that opted in."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted", "kvtier.dev/attach": "enabled"}
    apply(site, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}})


def apply(site: Site, document: Document) -> None:
    """As a person does."""
    site.kubectl("apply", "--filename", "-", stdin=json.dumps(document))


def ready_pod(site: Site, but: str = "") -> Document:
    """The one pod, once it is another one than before and serves.

    Args:
        site: Where.
        but: Its uid before.
    """

    def look() -> Document | None:
        pods: list[Document] = site.kubectl.json("get", "pods", "--namespace", NAMESPACE)["items"]
        if len(pods) != 1 or pods[0]["metadata"]["uid"] == but:
            return None
        conditions = {one["type"]: one["status"] for one in pods[0]["status"].get("conditions", [])}
        return pods[0] if conditions.get("Ready") == "True" else None

    return eventually(look, "pod that serves", _START_S) or {}


def url_of(pod: Document) -> str:
    """Where it serves."""
    return f"http://{pod['status']['podIP']}:{PORT}"


def pod_state(site: Site) -> str:
    """What the resource says of its only pod."""
    path = "jsonpath={.status.attach.pods[0].state}"
    return site.kubectl("get", "kvct", NAME, "--namespace", NAMESPACE, "--output", path)


def restart(site: Site, kind: str) -> None:
    """As its owner does."""
    site.kubectl("rollout", "restart", f"{kind.lower()}/{NAME}", "--namespace", NAMESPACE)
