"""What a benchmark of a resource's tiers changes of its plan: pure, as all planning."""

from dataclasses import dataclass, replace

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.backends import backends_that
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.budget_plan import Budget
from kvtier_operator.planning.pod.storage import EPHEMERAL_STORAGE, storage_bytes, without_weights
from kvtier_operator.planning.units import quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRun:
    """What is measured.

    Attributes:
        shape: Name of the model's sizes, whose weights are drawn.
        parts: Parts of `kvtier bench connector`.
        sides: What is compared on a GPU; empty on a CPU.
        turns: Engines of each side.
        deadline_s: Seconds after which it is ended, waiting for a node and the image included.
    """

    shape: str
    parts: tuple[str, ...]
    sides: tuple[str, ...]
    turns: int
    deadline_s: int


def without_shared_disk(resource: KVCacheTier) -> tuple[KVCacheTier, str]:
    """The resource without a disk tier that outlives its pods, and a line that says so; empty otherwise.

    Its engines have that volume's folder for themselves, and what a benchmark stores there would stay.
    """
    disk = resource.spec.tiers.disk
    if disk is None or not (disk.volume.persistent_volume_claim or disk.volume.host_path):
        return resource, ""
    volume = "persistentVolumeClaim" if disk.volume.persistent_volume_claim else "hostPath"
    line = (
        f"spec.tiers.disk: left out: its {volume} is the engines' own; a volume of the pod's is measured, too"
    )
    tiers = resource.spec.tiers.model_copy(update={"disk": None})
    return _with_spec(resource, tiers=tiers), line


def as_vllm(resource: KVCacheTier) -> KVCacheTier:
    """The resource with vLLM's own connector, in memory alone: what the side beside kvtier's needs."""
    tiers = resource.spec.tiers.model_copy(update={"disk": None})
    [backend] = backends_that(lambda traits: traits.bench_side == "vllm")
    return _with_spec(resource, backend=backend, tiers=tiers)


def in_namespace(resource: KVCacheTier, namespace: str | None) -> KVCacheTier:
    """The resource in another namespace, or as it is."""
    if namespace is None:
        return resource
    return resource.model_copy(
        update={"metadata": resource.metadata.model_copy(update={"namespace": namespace})}
    )


def with_room_for(plan: Plan, other: Plan) -> Plan:
    """A plan whose pod has room for another plan's engine as well, when its own has ended.

    With huge pages the two differ much: vLLM's own connector has its tier in ordinary memory.
    """
    largest = max(plan.budget, other.budget, key=_memory_bytes)
    memory = {"memory": quantity(_memory_bytes(largest))}
    budget = replace(
        plan.budget,
        memory=largest.memory,
        requests={**plan.budget.requests, **memory},
        limits={**plan.budget.limits, **memory},
        shm_bytes=max(plan.budget.shm_bytes, other.budget.shm_bytes),
    )
    demands = replace(plan.doctor.demands, memory_bytes=_memory_bytes(largest), shm_bytes=budget.shm_bytes)
    return replace(plan, budget=budget, doctor=replace(plan.doctor, demands=demands))


def without_download(plan: Plan) -> Plan:
    """A plan whose pod downloads no model: that of a benchmark has random weights."""
    storage = without_weights(plan.budget.storage)
    requests = {name: value for name, value in plan.budget.requests.items() if name != EPHEMERAL_STORAGE}
    if storage:
        requests[EPHEMERAL_STORAGE] = quantity(storage_bytes(storage))
    return replace(plan, weights=None, budget=replace(plan.budget, storage=storage, requests=requests))


def _memory_bytes(budget: Budget) -> int:
    return sum(line.bytes for line in budget.memory)


def _with_spec(resource: KVCacheTier, **changes: object) -> KVCacheTier:
    return resource.model_copy(update={"spec": resource.spec.model_copy(update=changes)})
