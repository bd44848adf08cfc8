"""Waiting until a cluster is as a resource says."""

from typing import Final

from tests.cluster.harness.api.commands import Command
from tests.shared.waiting import eventually

_READY_S: Final = 1500


def settle(kubectl: Command, name: str, engines: int) -> None:
    """Return when a KVCacheTier is Ready as it is now, with so many engines and no pod of an earlier one.

    Pickers on their way out may stay: some take their time, whether they have something to do or not.
    """
    generation = kubectl.json("get", "kvct", name)["metadata"]["generation"]
    for field in (f"{{.status.observedGeneration}}={generation}", f"{{.status.readyReplicas}}={engines}"):
        kubectl("wait", f"kvct/{name}", f"--for=jsonpath={field}", f"--timeout={_READY_S}s")
    for part in ("engine", "picker"):
        kubectl("rollout", "status", f"deployment/{name}-{part}", f"--timeout={_READY_S}s")
    kubectl("wait", f"kvct/{name}", "--for=condition=Ready", f"--timeout={_READY_S}s")
    labels = f"app.kubernetes.io/component=engine,app.kubernetes.io/instance={name}"

    def only() -> bool:
        return len(kubectl.json("get", "pods", "--selector", labels)["items"]) == engines

    eventually(only, f"pods of {engines} engines of {name} alone", _READY_S)
