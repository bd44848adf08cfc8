"""Who the engine's pod runs as and what it may do."""

from typing import Any, Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.tiers import Policy
from kvtier_operator.planning.backends.parts import disk_volumes

_USER: Final = 1000


def runs_as_root(spec: Spec) -> bool:
    """Whether the engine must be root.

    IPC_LOCK lifts RLIMIT_MEMLOCK only when it is effective, and the runtime makes an added capability
    effective for root alone (capabilities(7), execve: ambient ones are not set). A hostPath folder belongs
    to root: fsGroup does not apply to it.
    """
    disk, model = spec.tiers.disk, spec.model.volume
    volumes = (*(disk_volumes(disk) if disk else ()), *((model,) if model else ()))
    return wants_ipc_lock(spec) or any(volume.host_path for volume in volumes)


def wants_ipc_lock(spec: Spec) -> bool:
    """Whether the tier must be locked in memory: `Prefer` takes what can be had without rights (ADR 0020).

    On CUDA the driver page-locks through a call of its own, which RLIMIT_MEMLOCK does not bound; on a CPU
    mlock(2) is bounded by it.
    """
    return spec.tiers.cpu.memlock.policy is Policy.REQUIRE


def engine_pod_security(spec: Spec) -> dict[str, Any]:
    """The pod's security context."""
    profile = {"seccompProfile": {"type": "RuntimeDefault"}}
    if runs_as_root(spec):
        return {"runAsUser": 0, "runAsGroup": 0, **profile}
    return {
        "runAsNonRoot": True,
        "runAsUser": _USER,
        "runAsGroup": _USER,
        "fsGroup": _USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        **profile,
    }


def engine_container_security(spec: Spec) -> dict[str, Any]:
    """The containers' security context: nothing but, where it is required, locking memory."""
    nothing = fetcher_container_security()
    if not wants_ipc_lock(spec):
        return nothing
    return nothing | {"capabilities": nothing["capabilities"] | {"add": ["IPC_LOCK"]}}


def fetcher_container_security() -> dict[str, Any]:
    """That of a container that locks no memory."""
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
