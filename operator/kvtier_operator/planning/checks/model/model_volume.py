"""Whether the volume for the model's weights can hold them, and is used."""

from typing import Final

from kvtier_operator.api.spec.pod import Volume
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.units import size
from kvtier_operator.planning.verdict import CheckResult
from kvtier_operator.planning.weights.pod_weights import HF_HOME, is_downloaded

_VERDICTS: Final = Verdicts("model-volume", "spec.model.volume")


def model_volume(given: CheckInput) -> CheckResult:
    """What is downloaded must fit and be found again; a folder must be one of the volume's."""
    volume = given.spec.model.volume
    if volume is None:
        return _VERDICTS.passed("no volume for the weights", reason="NoModelVolume")
    if given.observed.machine is not None:
        return _VERDICTS.passed(
            "a local run takes the model from this machine's own cache", reason="NotLooked"
        )
    if is_downloaded(given.spec):
        return _downloaded(given, volume)
    return _folder(given.spec.model.name, volume)


def _folder(name: str, volume: Volume) -> CheckResult:
    if not name.startswith(f"{HF_HOME}/"):
        return _VERDICTS.warn(
            "ModelVolumeUnused",
            f"{name} is a folder, so nothing is downloaded: leave the volume out, or name a folder of it, "
            f"which is below {HF_HOME}",
            by_itself="mounts it all the same",
        )
    if not _lasts(volume):
        return _VERDICTS.reject(
            "ModelNotInVolume",
            f"{name} would be in a volume that is empty when its pod starts: use a persistentVolumeClaim or "
            "a hostPath that holds it, or a model that is downloaded",
        )
    return _VERDICTS.passed(f"{name} is read from the volume")


def _downloaded(given: CheckInput, volume: Volume) -> CheckResult:
    weights, replicas = given.geometry.weights_bytes, given.spec.most_replicas
    if volume.ephemeral and weights is None:
        return _VERDICTS.reject(
            "ModelVolumeWithoutSize",
            "the size of the model's weights is not known, and so not what to ask the storage class for; set "
            "spec.model.weights",
            field="spec.model.weights",
        )
    if not _lasts(volume):
        return _VERDICTS.passed("each pod gets the weights into a volume of its own")
    keeps = f"keeps {size(weights)} of weights" if weights else "keeps the weights"
    claim = volume.persistent_volume_claim
    if claim and replicas > 1:
        return _VERDICTS.passed(
            f"claim {claim.claim_name} {keeps} for {replicas} replicas: on several nodes its access mode "
            "must be ReadWriteMany"
        )
    return _VERDICTS.passed(f"the volume {keeps}")


def _lasts(volume: Volume) -> bool:
    return volume.persistent_volume_claim is not None or volume.host_path is not None
