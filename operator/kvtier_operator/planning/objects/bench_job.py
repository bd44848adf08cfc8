"""A benchmark of a resource's tiers: what it changes of the plan, and the Job that measures on a node."""

from dataclasses import dataclass, replace
from typing import Any, Final

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.backends import backends_that
from kvtier_operator.planning.base.merge import merged, without_containers
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.objects.engine.containers import engine_container
from kvtier_operator.planning.objects.engine.deployment import engine_pod
from kvtier_operator.planning.objects.engine.volumes import HOME
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.budget import EPHEMERAL_STORAGE, Budget, storage_bytes, without_weights
from kvtier_operator.planning.units import quantity

KEPT_S: Final = 86_400
"""How long its log can be read."""
_TERMINATION_LOG: Final = "/dev/termination-log"
_LIKE_THE_ENGINE: Final = ("image", "resources", "securityContext", "volumeMounts")
_COLUMNS: Final = "160"
"""Width of the table in the log, which has no terminal to ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRun:
    """What is measured."""

    shape: str  # name of the model's sizes, whose weights are drawn
    parts: tuple[str, ...]  # parts of `kvtier bench connector`
    sides: tuple[str, ...]  # what is compared on a GPU; empty on a CPU
    turns: int  # engines of each side
    deadline_s: int  # seconds after which it is ended, waiting for a node and the image included


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


def without_store(resource: KVCacheTier) -> tuple[KVCacheTier, str]:
    """The same of a remote tier: what a benchmark writes there would push out what engines read."""
    if resource.spec.tiers.remote is None:
        return resource, ""
    tiers = resource.spec.tiers.model_copy(update={"remote": None})
    line = "spec.tiers.remote: left out: its store is the engines' own"
    return _with_spec(resource, tiers=tiers), line


def without_prefixes(resource: KVCacheTier) -> KVCacheTier:
    """The resource without prefixes, which no engine of a benchmark's random weights knows."""
    return _with_spec(resource, prefixes=[], prefixes_within=None)


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


def with_memory_for(plan: Plan, other: Plan) -> Plan:
    """A plan whose pod has memory for another plan's engine as well, when its own has ended.

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


def bench_job(plan: Plan, run: BenchRun) -> dict[str, Any]:
    """One pod, run once: a second try would measure another node at another time.

    Its labels are not the engines', so no Service and no picker sends it a request. Its service account is
    the namespace's own, without a token: the engines' is there only where the resource has been applied.
    Of the engines' template it has what is the whole pod's: a container beside it would keep it from ending.
    """
    names = Names.of(plan)
    planned = {
        "metadata": {"labels": names.labels(Component.BENCH)},
        "spec": engine_pod(plan, _container(plan, run)) | {"restartPolicy": "Never"},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": names.metadata(names.bench, Component.BENCH),
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": run.deadline_s,
            "ttlSecondsAfterFinished": KEPT_S,
            "template": merged(planned, without_containers(plan.resource.spec.engine.pod_template or {})),
        },
    }


def _container(plan: Plan, run: BenchRun) -> dict[str, Any]:
    engine = engine_container(plan)
    return {
        "name": "bench",
        **{field: engine[field] for field in _LIKE_THE_ENGINE},
        # the engine's image has no program of kvtier's
        "command": ["python3", "-m", "kvtier_connector.bench"],
        "args": _arguments(plan, run),
        "env": [{"name": "COLUMNS", "value": _COLUMNS}, *engine["env"]],
        "terminationMessagePath": _TERMINATION_LOG,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _arguments(plan: Plan, run: BenchRun) -> list[str]:
    """What is measured, and after `--` the engine's own arguments but for the model, which is drawn."""
    _model, *engine = plan.engine.args
    sides = ["--sides", ",".join(run.sides)] if run.sides else []
    return [
        *("--only", ",".join(run.parts)),
        *("--shape", run.shape),
        *sides,
        *("--turns", str(run.turns)),
        *("--out", f"{HOME}/bench/connector.json"),
        *("--termination-log", _TERMINATION_LOG),
        "--",
        *engine,
    ]
