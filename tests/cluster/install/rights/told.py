"""A resource of these tests, and what its status says to whoever asks with kubectl."""

from typing import Any, Final

from tests.cluster.harness.api.commands import Command

NAME: Final = "qwen"
RESOURCE: Final = {
    "apiVersion": "kvtier.dev/v1alpha1",
    "kind": "KVCacheTier",
    "metadata": {"name": NAME},
    "spec": {"model": {"name": "Qwen/Qwen3-32B"}, "tiers": {"cpu": {"capacity": "100Gi"}}},
}


def ready(kubectl: Command, namespace: str, reason: str = "") -> dict[str, Any]:
    """Condition Ready, if it has this reason where one is given; else nothing."""
    conditions = _status(kubectl, namespace).get("conditions", ())
    found: dict[str, Any] = next((condition for condition in conditions if condition["type"] == "Ready"), {})
    return found if not reason or found.get("reason") == reason else {}


def observed(kubectl: Command, namespace: str) -> int:
    """Generation of the spec that the status speaks of."""
    return int(_status(kubectl, namespace)["observedGeneration"])


def _status(kubectl: Command, namespace: str) -> dict[str, Any]:
    status: dict[str, Any] = kubectl.json("get", "kvct", NAME, "--namespace", namespace).get("status", {})
    return status
