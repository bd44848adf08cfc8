"""Whether the model's weights are known, counted and where pods can have them."""

from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.api.spec.pod import Volume
from kvtier_operator.planning.backends.traits import Folder
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.pod.budget import EPHEMERAL_STORAGE
from kvtier_operator.planning.pod_template.template import engine_mounts
from kvtier_operator.planning.units import size
from kvtier_operator.planning.verdict import CheckResult
from kvtier_operator.planning.weights.pod_weights import (
    HF_HOME,
    ModelSource,
    SourceKind,
    is_downloaded,
    is_streamed,
    moves_weights,
    plan_weights,
    weights_volume_bytes,
)
from kvtier_operator.planning.weights.pod_weights import model_source as source_of


@check("spec.model.weights")
def weights_known(parts: CheckInput) -> CheckResult:
    """Weights are part of the pod's memory on device cpu, and of its disk where each pod downloads them."""
    weights = parts.geometry.weights_bytes
    if weights is not None:
        return _fit(parts, weights)
    lacking = [
        name
        for name, needs in (("memory limit", _in_memory(parts)), ("ephemeral-storage", _on_disk(parts)))
        if needs
    ]
    if lacking:
        amounts = " and ".join(lacking)
        return weights_known.warn(
            "WeightsUnknown",
            f"the size of the model's weights is not known, and is part of the pod's {amounts}; set it",
            by_itself=f"leaves them out of that{_unchecked_text(parts)}",
            weight=90,
        )
    return weights_known.passed("not known, and not needed for memory or disk", reason="Unknown")


def _unchecked_text(parts: CheckInput) -> str:
    """What nothing looks at where the device's own cache follows from the weights."""
    if parts.spec.engine.device is Device.CPU or parts.tiers.gpu is not None:
        return ""
    return ", and checks neither whether they fit nor whether the tier is larger than the device's cache"


def _in_memory(parts: CheckInput) -> bool:
    resources = parts.spec.engine.resources
    return parts.spec.engine.device is Device.CPU and "memory" not in {*resources.requests, *resources.limits}


def _on_disk(parts: CheckInput) -> bool:
    return _own_storage(parts) is None and (_in_empty_dir(parts) or _in_image(parts))


def _in_image(parts: CheckInput) -> bool:
    weights = plan_weights(parts.spec, parts.geometry)
    return parts.observed.machine is None and weights is not None and "image" in weights.source


def _fit(parts: CheckInput, weights_bytes: int) -> CheckResult:
    """A figure of the resource's own stands for all that the engine has on disk, its model included."""
    own, needed = _own_storage(parts), weights_volume_bytes(weights_bytes)
    if own is not None and _in_empty_dir(parts):
        where, value = own
        if parse_bytes(value) < needed:
            return weights_known.warn(
                "StorageBelowWeights",
                f"{value} stand for all that the engine keeps on its node's disk, and each pod downloads "
                f"{size(weights_bytes)} of weights; raise it above {size(needed)}, or leave it out",
                by_itself="requests that much",
                field=f"spec.engine.resources.{where}.{EPHEMERAL_STORAGE}",
                weight=70,
            )
    return weights_known.passed(f"{size(weights_bytes)} of weights")


def _own_storage(parts: CheckInput) -> tuple[str, str | int] | None:
    resources = parts.spec.engine.resources
    for where, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        if EPHEMERAL_STORAGE in amounts:
            return where, amounts[EPHEMERAL_STORAGE]
    return None


def _in_empty_dir(parts: CheckInput) -> bool:
    """Whether pods download them to their node's own disk, in a volume or beside all of them."""
    if parts.observed.machine is not None or not is_downloaded(parts.spec):
        return False
    weights = plan_weights(parts.spec, parts.geometry)
    return moves_weights(parts.spec) if weights is None else "emptyDir" in weights.source


@check("spec.model.source")
def model_source(parts: CheckInput) -> CheckResult:
    """What kvtier mounts is only read, so pods may share it; a fetcher writes."""
    source = source_of(parts.spec.model)
    if source is None:
        return _by_name(parts)
    if parts.observed.machine is not None:
        here = source.kind is SourceKind.NODE
        what = f"folder {source.place}" if here else "the model from this machine's own cache"
        return model_source.passed(f"a local run takes {what}", reason="NotLooked")
    match source.kind:
        case SourceKind.CLAIM:
            several = ": on several nodes its access mode must be ReadOnlyMany or ReadWriteMany"
            more = several if parts.spec.most_pods > 1 else ""
            return model_source.passed(f"{source.folder} is claim {source.place}'s, for reading{more}")
        case SourceKind.IMAGE:
            return model_source.passed(
                f"{source.folder} is in image {source.place}, for reading: Kubernetes mounts images by "
                "default from 1.35"
            )
        case SourceKind.NODE:
            return model_source.passed(f"{source.place} must be on every node, and readable by user 1000")
    return _by_fetcher(parts, source)


def _by_name(parts: CheckInput) -> CheckResult:
    name = parts.spec.model.name
    if is_streamed(parts.spec.model):
        return _by_streaming(parts)
    if name.startswith("/") and parts.observed.machine is None:
        return _by_path(parts)
    return model_source.passed("the model is found by its name", reason="NoModelSource")


def _by_streaming(parts: CheckInput) -> CheckResult:
    """A disk tier knows a bucket's path, not what lies there (kvtier_connector.vllm.fingerprint)."""
    model, disk = parts.spec.model, parts.spec.tiers.disk
    if not model.served_names:
        return model_source.warn(
            "BucketIsName",
            f"vLLM streams the weights from the bucket, and clients must ask for {model.name}: set "
            "spec.model.servedNames to what they call the model",
            field="spec.model.servedNames",
        )
    if disk is not None and parts.traits.disk.folder is not Folder.EMPTIED and disk.volume.outlives_pods:
        return model_source.warn(
            "WeightsKnownByPath",
            f"the disk tier knows the weights by {model.name} alone: where that gets new ones, prompts are "
            "answered from what the former computed, and wrongly; give new weights a path of their own",
            field="spec.model.name",
            weight=40,
        )
    return model_source.passed("vLLM streams the weights from the bucket, and downloads none")


def _by_path(parts: CheckInput) -> CheckResult:
    """A folder must be in the engine's container: in the image, or mounted there."""
    name, image = parts.spec.model.name, parts.spec.engine.image
    folders = (*([HF_HOME] if parts.spec.model.volume else []), *engine_mounts(parts.spec))
    if any(f"{name}/".startswith(f"{folder.rstrip('/')}/") for folder in folders):
        return model_source.passed(f"{name} is mounted in the engine's container")
    if image is not None:
        return model_source.passed(f"{name} must be in image {image}: nothing is mounted there")
    return model_source.warn(
        "ModelNotMounted",
        f"{name} is a folder, and nothing is mounted there: write file://{name} of the node or "
        "pvc://CLAIM/FOLDER into spec.model.source, and what clients call the model into spec.model.name",
        field="spec.model.name",
        weight=100,
    )


def _by_fetcher(parts: CheckInput, source: ModelSource) -> CheckResult:
    volume, pods = parts.spec.model.volume, parts.spec.most_pods
    shared = volume is not None and volume.outlives_pods
    if shared and pods > 1:
        return model_source.warn(
            "FetchersShareVolume",
            f"the fetchers of {pods} pods write into one folder, and each may find what another is "
            "still writing: take one that writes beside and renames, or bring the model once and write pvc://",
            field="spec.model.fetcher",
        )
    disk = parts.spec.tiers.disk
    reads_earlier = parts.traits.disk.folder is Folder.OWN
    if disk is not None and reads_earlier and not shared and disk.volume.outlives_pods:
        return model_source.warn(
            "DiskStartsEmpty",
            "each pod fetches the weights anew, and by their times the disk tier takes them for others: "
            "it starts empty; keep them on a claim in spec.model.volume, or bring them once and write pvc://",
            field="spec.model.fetcher",
        )
    return model_source.passed(f"the fetcher brings {source.place} before each start")


@check("spec.model.volume")
def model_volume(parts: CheckInput) -> CheckResult:
    """What is downloaded must fit and be found again; a folder must be one of the volume's."""
    volume = parts.spec.model.volume
    if volume is None:
        return model_volume.passed("no volume for the weights", reason="NoModelVolume")
    if parts.observed.machine is not None:
        return model_volume.passed(
            "a local run takes the model from this machine's own cache", reason="NotLooked"
        )
    if is_downloaded(parts.spec):
        return _by_download(parts, volume)
    if is_streamed(parts.spec.model):
        return model_volume.warn(
            "ModelVolumeUnused",
            "vLLM streams the weights from the bucket, so nothing is downloaded: leave the volume out",
            by_itself="mounts it all the same",
            weight=-40,
        )
    return _folder(parts.spec.model.name, volume)


def _folder(name: str, volume: Volume) -> CheckResult:
    if not name.startswith(f"{HF_HOME}/"):
        return model_volume.warn(
            "ModelVolumeUnused",
            f"{name} is a folder, so nothing is downloaded: leave the volume out, or name a folder of it, "
            f"which is below {HF_HOME}",
            by_itself="mounts it all the same",
            weight=-40,
        )
    if not volume.outlives_pods:
        return model_volume.reject(
            "ModelNotInVolume",
            f"{name} would be in a volume that is empty when its pod starts: use a persistentVolumeClaim or "
            "a hostPath that holds it, or a model that is downloaded",
        )
    return model_volume.passed(f"{name} is read from the volume")


def _by_download(parts: CheckInput, volume: Volume) -> CheckResult:
    weights, pods = parts.geometry.weights_bytes, parts.spec.most_pods
    if volume.ephemeral and weights is None:
        return model_volume.reject(
            "ModelVolumeWithoutSize",
            "the size of the model's weights is not known, and so not what to ask the storage class for; set "
            "spec.model.weights",
            field="spec.model.weights",
        )
    if not volume.outlives_pods:
        return model_volume.passed("each pod gets the weights into a volume of its own")
    keeps = f"keeps {size(weights)} of weights" if weights else "keeps the weights"
    claim = volume.persistent_volume_claim
    if claim and pods > 1:
        return model_volume.passed(
            f"claim {claim.claim_name} {keeps} for {pods} pods: on several nodes its access mode "
            "must be ReadWriteMany"
        )
    return model_volume.passed(f"the volume {keeps}")
