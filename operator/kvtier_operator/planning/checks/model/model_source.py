"""Whether every engine pod can have the model from where the resource says that it is."""

from typing import Final

from kvtier_operator.api.spec.pod import Volume
from kvtier_operator.planning.backends.traits import Folder
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.verdict import CheckResult
from kvtier_operator.planning.weights.model_source import ModelSource, SourceKind
from kvtier_operator.planning.weights.model_source import model_source as source_of

_VERDICTS: Final = Verdicts("model-source", "spec.model.source")


def model_source(given: CheckInput) -> CheckResult:
    """What kvtier mounts is only read, so pods may share it; a fetcher writes."""
    source = source_of(given.spec.model)
    if source is None:
        return _VERDICTS.passed("the model is found by its name", reason="NoModelSource")
    if given.observed.machine is not None:
        here = source.kind is SourceKind.NODE
        what = f"folder {source.place}" if here else "the model from this machine's own cache"
        return _VERDICTS.passed(f"a local run takes {what}", reason="NotLooked")
    match source.kind:
        case SourceKind.CLAIM:
            several = ": on several nodes its access mode must be ReadOnlyMany or ReadWriteMany"
            more = several if given.spec.most_replicas > 1 else ""
            return _VERDICTS.passed(f"{source.folder} is claim {source.place}'s, for reading{more}")
        case SourceKind.IMAGE:
            return _VERDICTS.passed(
                f"{source.folder} is in image {source.place}, for reading: Kubernetes mounts images by "
                "default from 1.35"
            )
        case SourceKind.NODE:
            return _VERDICTS.passed(f"{source.place} must be on every node, and readable by user 1000")
    return _fetched(given, source)


def _fetched(given: CheckInput, source: ModelSource) -> CheckResult:
    volume, replicas = given.spec.model.volume, given.spec.most_replicas
    shared = volume is not None and _lasts(volume)
    if shared and replicas > 1:
        return _VERDICTS.warn(
            "FetchersShareVolume",
            f"the fetchers of {replicas} replicas write into one folder, and each may find what another is "
            "still writing: take one that writes beside and renames, or bring the model once and write pvc://",
            field="spec.model.fetcher",
        )
    disk = given.spec.tiers.disk
    reads_earlier = given.traits.disk.folder is Folder.OWN
    if disk is not None and reads_earlier and not shared and _lasts(disk.volume):
        return _VERDICTS.warn(
            "DiskStartsEmpty",
            "each pod fetches the weights anew, and by their times the disk tier takes them for others: "
            "it starts empty; keep them on a claim in spec.model.volume, or bring them once and write pvc://",
            field="spec.model.fetcher",
        )
    return _VERDICTS.passed(f"the fetcher brings {source.place} before each start")


def _lasts(volume: Volume) -> bool:
    return volume.persistent_volume_claim is not None or volume.host_path is not None
