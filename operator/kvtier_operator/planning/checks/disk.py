"""Whether the disk tier's folder can hold it, and what that costs."""

from typing import Final

from kvtier_common.tier import Tier
from kvtier_operator.api.spec.pod import Volume
from kvtier_operator.planning.backends import any_backend_that
from kvtier_operator.planning.backends.parts import disk_volumes
from kvtier_operator.planning.backends.traits import Folder
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.tiers.capacity import chunk_bytes
from kvtier_operator.planning.units import count, many, size, size_exact
from kvtier_operator.planning.verdict import CheckResult
from kvtier_operator.planning.weights.pod_weights import SourceKind, is_downloaded, model_source


@check("spec.tiers.disk")
def disk_restart(parts: CheckInput) -> CheckResult:
    """What the backend says of its disk tier."""
    disk = parts.spec.tiers.disk
    if disk is None:
        return disk_restart.passed("no disk tier", reason="NoDiskTier")
    if caveat := parts.traits.disk.caveat:
        return disk_restart.warn(caveat.reason, caveat.message, by_itself=caveat.by_itself)
    return disk_restart.passed(
        f"backend {parts.spec.backend} keeps to the capacity and is warm after a restart"
        + _until(disk.volume)
    )


def _until(volume: Volume) -> str:
    return (
        "" if volume.persistent_volume_claim or volume.host_path else ", until its pod goes with the volume"
    )


@check("spec.tiers.disk.capacity")
def disk_behind_memory(parts: CheckInput) -> CheckResult:
    """Blocks pass through the CPU tier both ways, and a part of it holds what waits to be written.

    What finds no room there is not written (kvtier_connector.core.disk.tier, `admit`): a prompt longer than
    that part needs a disk that keeps up with its prefill.
    """
    disk, cpu, engine = parts.spec.tiers.disk, parts.tiers.cpu, parts.spec.engine
    if disk is None:
        return disk_behind_memory.passed("no disk tier", reason="NoDiskTier")
    share = parts.traits.disk.waiting_share
    if share is None:
        backends = any_backend_that(lambda traits: traits.disk.waiting_share)
        return disk_behind_memory.passed(
            f"backend {backends} alone writes behind its CPU tier", reason="NotAskedFor"
        )
    engines = engine.data_parallel_size
    chunk = chunk_bytes(parts.geometry, parts.backend)
    held = parts.backend.chunks.get(Tier.DISK)
    if held is None or not held.chunks:
        return disk_behind_memory.reject(
            "DiskHoldsNothing",
            f"{size(disk.capacity.bytes)} in {many(engines, 'engine')} cannot hold one chunk of "
            f"{parts.backend.tokens_per_chunk} tokens, "
            f"{size(chunk)}, and its index; raise it",
        )
    bound = disk.writes_per_hour
    if bound is not None and bound.bytes // engines < chunk:
        return disk_behind_memory.reject(
            "DiskNeverWritten",
            f"{size(bound.bytes)} an hour in {many(engines, 'engine')} never lets a chunk of {size(chunk)} "
            f"be written; raise it above {size(chunk * engines)}, or leave it out for no bound",
            field="spec.tiers.disk.writesPerHour",
        )
    waiting = cpu.tokens // engines // share
    longest = parts.geometry.longest_tokens(engine)
    numbers = f"{count(held.chunks)} chunks an engine, {count(waiting)} tokens may wait to be written"
    if longest is not None and waiting < longest:
        needed = longest * share * parts.geometry.kv_bytes_per_token * engines
        return disk_behind_memory.warn(
            "MemorySmallBesideDisk",
            f"{numbers}, the longest sequence has {count(longest)}: where the disk does not keep up with its "
            f"prefill, its end is not written; {size(needed)} of CPU tier would hold it",
            by_itself="has what was left out written when it is used again",
            field="spec.tiers.cpu.capacity",
        )
    return disk_behind_memory.passed(numbers)


@check("spec.tiers.disk.volume")
def disk_folder(parts: CheckInput) -> CheckResult:
    """A backend may lock its folder: a second engine there is refused at its start, with the holder's name.

    Source: kvtier_connector.core.disk.files.folder.
    """
    disk, here = parts.spec.tiers.disk, parts.observed.machine is not None
    replicas = parts.spec.least_replicas if here else parts.spec.most_replicas
    pods = replicas if here else parts.spec.most_pods
    if disk is None:
        return disk_folder.passed("no disk tier", reason="NoDiskTier")
    if parts.traits.disk.folder is not Folder.OWN:
        backends = any_backend_that(lambda traits: traits.disk.folder is Folder.OWN)
        return disk_folder.passed(
            f"backend {backends} alone needs its folder to itself", reason="NotAskedFor"
        )
    claim, host = disk.volume.persistent_volume_claim, disk.volume.host_path
    kept_apart = host and not here and parts.one_engine_a_node
    if pods <= 1 or kept_apart or not (host or (claim and not here)):
        return disk_folder.passed("each engine pod has a folder of its own")
    if shared := _shared_folder(parts, disk.volume, replicas, surge=pods > replicas):
        return shared
    return disk_folder.warn(
        "OneEngineOfANode",
        f"an engine needs its folder to itself: of {replicas} replicas a second one on a node does not "
        "start; keep them apart with a required anti-affinity by host name in spec.engine.affinity",
        by_itself="starts all of them, and EnginesReady names the pod that finds its folder taken",
        field="spec.tiers.disk.volume.hostPath",
        weight=120,
    )


def _shared_folder(parts: CheckInput, volume: Volume, replicas: int, *, surge: bool) -> CheckResult | None:
    """The refusal where two engines would certainly have one folder."""
    claim = volume.persistent_volume_claim
    if surge:
        apart = "" if claim else ", or keep engines apart with a required anti-affinity by host name"
        return disk_folder.reject(
            "FolderShared",
            "Surge starts an engine while the one before has the disk tier's folder, and an engine needs its "
            f"folder to itself: use InPlace, or emptyDir or ephemeral in spec.tiers.disk.volume{apart}",
            field="spec.engine.rollout.strategy",
        )
    if claim:
        return disk_folder.reject(
            "FolderShared",
            f"{replicas} replicas would share claim {claim.claim_name}, and an engine needs its folder to "
            "itself: use ephemeral, which makes a volume for each pod, or set "
            f"{parts.spec.most_replicas_field} to 1",
        )
    if parts.observed.machine is not None:
        return disk_folder.reject(
            "FolderShared",
            f"{replicas} replicas of this machine would share it, and an engine needs its folder to itself: "
            f"use emptyDir, or set {parts.spec.least_replicas_field} to 1",
            field="spec.tiers.disk.volume.hostPath",
        )
    return None


@check("spec.tiers.disk.capacity")
def machine_disk(parts: CheckInput) -> CheckResult:
    """Capacity of all replicas against free space, with what a run before this one left to be taken over."""
    disk, free = parts.spec.tiers.disk, parts.machine.disk_free_bytes
    if disk is None or free is None or not parts.backend.bytes_per_rank[Tier.DISK]:
        return machine_disk.passed("no disk of this machine to look at", reason="NotLooked")
    needed = disk.capacity.bytes * max(1, parts.spec.least_replicas)
    own = parts.machine.disk_own_bytes if parts.traits.disk.folder is Folder.OWN else 0
    room = f"{size_exact(free)} free" + (f" and {size_exact(own)} of its own" if own else "")
    if needed <= free + own:
        return machine_disk.passed(f"{size_exact(needed)} needed, {room}")
    return machine_disk.reject(
        "DiskTooSmall",
        f"the disk tier needs {size_exact(needed)}, this machine has {room}; lower the capacity",
    )


_DISK: Final = "spec.tiers.disk.volume.hostPath"
_MODEL: Final = "spec.model.volume.hostPath"
_SOURCE: Final = "spec.model.source"


@check(_DISK)
def host_path(parts: CheckInput) -> CheckResult:
    """The kubelet neither counts nor bounds nor removes what lies in a hostPath.

    What sharing one means to a backend that locks it is the check disk-folder's. Weights may be shared.
    """
    disk, model = parts.spec.tiers.disk, parts.spec.model.volume
    folders = [volume.host_path.path for volume in disk_volumes(disk) if volume.host_path] if disk else []
    sizes = [size(disk.capacity.bytes)] if disk and folders else []
    shared = _shared_text(parts) if folders else ""
    field = _DISK if folders else _MODEL
    # a local run takes the model from this machine's own cache
    if model and model.host_path and parts.observed.machine is None:
        folders.append(model.host_path.path)
        if parts.geometry.weights_bytes and is_downloaded(parts.spec):
            sizes.append(f"{size(parts.geometry.weights_bytes)} of weights")
    source = model_source(parts.spec.model)
    if source and source.kind is SourceKind.NODE and parts.observed.machine is None:
        field = field if folders else _SOURCE
        folders.append(source.place)
    if not folders:
        return host_path.passed("no hostPath", reason="NoHostPath")
    what = f"its {' and '.join(sizes)}" if sizes else "what lies there"
    return host_path.warn(
        "HostPathNotAccounted",
        f"{', '.join(folders)} on the node: Kubernetes neither reserves nor frees {what}, and Pod Security "
        f"forbids hostPath outside privileged namespaces{shared}; keep room for it, or take another volume",
        by_itself="mounts it, and NodesFit does not count it",
        field=field,
        weight=-20,
    )


def _shared_text(parts: CheckInput) -> str:
    replicas = parts.spec.most_replicas
    if replicas <= 1 or parts.traits.disk.folder is Folder.OWN or parts.one_engine_a_node:
        return ""
    return (
        f"; {replicas} replicas on one node would share it, so keep them apart with a required anti-affinity "
        "by host name in spec.engine.affinity"
    )
