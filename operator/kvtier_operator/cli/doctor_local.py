"""`kvtier doctor -f`: this machine against what `kvtier run` would take of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kvtier_operator.cli.inputs.load import load
from kvtier_operator.cli.inputs.plans import plans_of
from kvtier_operator.doctor.examine import examine
from kvtier_operator.doctor.verdict import Place, Verdict
from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.demands import Demands, VolumeDemand
from kvtier_operator.planning.verdict import Outcome
from kvtier_operator.runtime.machine import state_folder
from kvtier_operator.runtime.store import installed_program


@dataclass(frozen=True, slots=True)
class Examination:
    """What this machine has for one resource."""

    source: str  # where the resource came from
    namespace: str  # of the resource
    name: str  # of the resource
    verdicts: list[Verdict]  # where a check refuses its plan, the refusals


def examine_here(paths: Sequence[str], *, model_config: str | None, hub: bool) -> Iterator[Examination]:
    """This machine, for each resource of some files."""
    place = Place("this machine", in_pod=False)
    for source, plan in plans_of(load(paths), model_config=model_config, hub=hub):
        refusals = [
            Verdict.failed(check.name, f"{check.field}: {check.message}")
            for check in plan.checks
            if check.outcome is Outcome.REJECT
        ]
        yield Examination(
            source,
            plan.resource.metadata.namespace,
            plan.resource.metadata.name,
            refusals or [*examine(demands_here(plan, state_folder()), place), *_own_store(plan)],
        )


def demands_here(plan: Plan, folder: Path = Path()) -> Demands:
    """What all replicas demand of one machine: its memory, /dev/shm, huge pages and disks."""
    one, replicas = plan.doctor.demands, max(1, plan.resource.spec.least_replicas)
    sidecars = sum(sidecar.memory_bytes for sidecar in plan.engine.sidecars)
    remote = plan.resource.spec.tiers.remote
    pages = replace(one.hugepages, pages=one.hugepages.pages * replicas) if one.hugepages else None
    return replace(
        one,
        memory_bytes=(one.memory_bytes + sidecars) * replicas,
        shm_bytes=one.shm_bytes * replicas,
        hugepages=pages,
        volumes=tuple(
            VolumeDemand(str(_existing(mount.source, folder)), volume.bytes * replicas, volume.direct_io)
            for mount, volume in zip(plan.engine.mounts, one.volumes, strict=True)
        ),
        # what kvtier makes in a cluster is no server here: a run starts one of its own
        remote=None if remote and remote.managed else one.remote,
    )


def _own_store(plan: Plan) -> Iterator[Verdict]:
    """Whether a run can start the store that kvtier makes; nothing where none is to be made."""
    remote = plan.resource.spec.tiers.remote
    if remote is None or remote.managed is None:
        return
    try:
        yield Verdict.passed("store", f"{installed_program()} will run it")
    except RuntimeFailedError as error:
        yield Verdict.failed("store", f"spec.tiers.remote.managed: {error}")


def _existing(source: object, folder: Path) -> Path:
    """The folder that a volume would be in: it may itself be made at start."""
    host_path = source.get("hostPath") if isinstance(source, dict) else None
    wanted = Path(host_path["path"]) if host_path else folder.absolute()
    return next(folder for folder in (wanted, *wanted.parents) if folder.is_dir())
