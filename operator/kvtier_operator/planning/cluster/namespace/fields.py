"""The fields of a KVCacheTier behind what its pods ask a namespace for."""

import re
from collections.abc import Mapping
from typing import Final

from kvtier_operator.planning.base.devices import GPU, named_devices
from kvtier_operator.planning.base.names import Component
from kvtier_operator.planning.cluster.namespace.names import MEMORY, STORAGE, plain, storage_class_of
from kvtier_operator.planning.cluster.namespace.workload import Workload
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.budget import EPHEMERAL_STORAGE, own_bytes, tier_bytes, weights_bytes
from kvtier_operator.planning.pod_template.template import ENGINE, ROUTER
from kvtier_operator.planning.weights.pod_weights import SOURCE_VOLUME_NAME, VOLUME_NAME

_RESOURCES: Final = {
    Component.PICKER: "spec.router.resources",
    Component.GATEWAY: "spec.router.gateway.standalone.resources",
}
"""Of the pods whose compute resources are all said in one place."""
WEIGHTS: Final = "spec.model.volume"
SOURCE: Final = "spec.model.source"
_DISK: Final = "spec.tiers.disk.capacity"
_DISK_TIER: Final = "spec.tiers.disk"
_DISK_VOLUME: Final = re.compile(r"kv-disk-(\d+)")
_ENGINE_FIELDS: Final = (
    (MEMORY, "spec.tiers.cpu.capacity"),
    ("hugepages-", "spec.tiers.cpu.capacity"),
)


def shares(plan: Plan, workload: Workload, resource: str, amount: int) -> Mapping[str, int]:
    """How much of a resource each field makes one pod take, by the fields' paths; never empty.

    Args:
        plan: The Plan.
        workload: Whose pod it is.
        resource: As a quota or a LimitRange names it.
        amount: What the pod takes of it.
    """
    name = plain(resource)
    if name == STORAGE:
        return _in_claims(workload, storage_class_of(resource)) or {_DISK: amount}
    if where := _RESOURCES.get(workload.component):
        return {where: amount}
    if name == EPHEMERAL_STORAGE:
        return _on_node(plan) or {"spec.engine.resources": amount}
    if name == GPU and name not in named_devices(plan.resource.spec):
        return {"spec.engine.tensorParallelSize": amount}
    found = (field for start, field in _ENGINE_FIELDS if name.startswith(start))
    return {next(found, "spec.engine.resources"): amount}


def field(plan: Plan, workload: Workload, resource: str) -> str:
    """Path of the field that decides first how much of a resource a pod takes."""
    return next(iter(shares(plan, workload, resource, 0)))


def claim_field(component: Component, volume: str) -> str:
    """Path of the field that decides the size of a volume that is made with a pod."""
    where = volume_field(component, volume)
    return _DISK if where.startswith(_DISK_TIER) else where


def volume_field(component: Component, volume: str) -> str:
    """Path of the field behind a volume of a component's pods."""
    own = {VOLUME_NAME: WEIGHTS, SOURCE_VOLUME_NAME: SOURCE} if component is Component.ENGINE else {}
    if volume in own:
        return own[volume]
    found = _DISK_VOLUME.fullmatch(volume)
    if component is not Component.ENGINE or found is None:
        template = ENGINE if component is Component.ENGINE else ROUTER
        return f"{template}.spec.volumes[{volume}]"
    index = int(found[1])
    return f"{_DISK_TIER}.extraVolumes[{index - 1}]" if index else f"{_DISK_TIER}.volume"


def less(field: str, resource: str) -> str:
    """What to do about what a field makes a pod take too much of; of weights the size is the model's."""
    if field == SOURCE:
        return f"take the weights from a claim: pvc://CLAIM in {SOURCE}"
    if field != WEIGHTS:
        return f"lower {field}"
    kind = "emptyDir" if plain(resource) == EPHEMERAL_STORAGE else "ephemeral"
    return f"keep the weights on another {WEIGHTS} than {kind}"


def _on_node(plan: Plan) -> dict[str, int]:
    """Of the node's disk, what is worth lowering: not the allowance for logs."""
    lines = plan.budget.storage
    is_image = plan.weights is not None and "image" in plan.weights.source
    found = {
        _DISK: tier_bytes(lines),
        SOURCE if is_image else WEIGHTS: weights_bytes(lines),
        "spec.engine.resources": own_bytes(lines),
    }
    return {field: size for field, size in found.items() if size}


def _in_claims(workload: Workload, storage_class: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for claim in workload.claims:
        if not storage_class or claim.storage_class in (None, storage_class):
            where = claim_field(workload.component, claim.volume)
            found[where] = found.get(where, 0) + claim.storage_bytes
    return found
