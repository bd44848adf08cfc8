"""Folders of the node as a disk tier, or for the model's weights."""

from typing import Final

from kvtier_operator.planning.backends.parts import disk_volumes
from kvtier_operator.planning.backends.traits import Folder
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.units import size
from kvtier_operator.planning.verdict import CheckResult, Verdicts
from kvtier_operator.planning.weights.pod_weights import SourceKind, is_downloaded, model_source

_DISK: Final = "spec.tiers.disk.volume.hostPath"
_MODEL: Final = "spec.model.volume.hostPath"
_SOURCE: Final = "spec.model.source"
_VERDICTS: Final = Verdicts("host-path", _DISK)


def host_path(given: CheckInput) -> CheckResult:
    """The kubelet neither counts nor bounds nor removes what lies in a hostPath.

    What sharing one means to a backend that locks it is the check disk-folder's. Weights may be shared.
    """
    disk, model = given.spec.tiers.disk, given.spec.model.volume
    folders = [each.host_path.path for each in disk_volumes(disk) if each.host_path] if disk else []
    sizes = [size(disk.capacity.bytes)] if disk and folders else []
    shared = _shared(given) if folders else ""
    field = _DISK if folders else _MODEL
    # a local run takes the model from this machine's own cache
    if model and model.host_path and given.observed.machine is None:
        folders.append(model.host_path.path)
        if given.geometry.weights_bytes and is_downloaded(given.spec):
            sizes.append(f"{size(given.geometry.weights_bytes)} of weights")
    source = model_source(given.spec.model)
    if source and source.kind is SourceKind.NODE and given.observed.machine is None:
        field = field if folders else _SOURCE
        folders.append(source.place)
    if not folders:
        return _VERDICTS.passed("no hostPath", reason="NoHostPath")
    what = f"its {' and '.join(sizes)}" if sizes else "what lies there"
    return _VERDICTS.warn(
        "HostPathNotAccounted",
        f"{', '.join(folders)} on the node: Kubernetes neither reserves nor frees {what}, and Pod Security "
        f"forbids hostPath outside privileged namespaces{shared}; keep room for it, or take another volume",
        by_itself="mounts it, and NodesFit does not count it",
        field=field,
    )


def _shared(given: CheckInput) -> str:
    replicas = given.spec.most_replicas
    if replicas <= 1 or given.traits.disk.folder is Folder.OWN or given.one_engine_a_node:
        return ""
    return (
        f"; {replicas} replicas on one node would share it, so keep them apart with a required anti-affinity "
        "by host name in spec.engine.affinity"
    )
