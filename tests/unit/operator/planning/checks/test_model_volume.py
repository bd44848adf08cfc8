"""Checks of the weights and their volume: model-volume, weights-known, and what a volume rules out."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says
from tests.cases.planning import check_input, on, resource

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.planning.checks.check import Check
from kvtier_operator.planning.checks.host_path import host_path
from kvtier_operator.planning.checks.model_volume import model_volume
from kvtier_operator.planning.checks.reserved_arguments import reserved_arguments
from kvtier_operator.planning.checks.reserved_environment import reserved_environment
from kvtier_operator.planning.checks.weights_known import weights_known
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import CheckResult

UNKNOWN = {"name": "a/b", "geometry": {"kvBytesPerToken": 1000}}
FOLDER = UNKNOWN | {"name": "/var/lib/kvtier/huggingface/qwen"}
CLAIM = {"volume": {"persistentVolumeClaim": {"claimName": "models"}}}
HOST = {"volume": {"hostPath": {"path": "/srv/models"}}}
EPHEMERAL: dict[str, Any] = {"volume": {"ephemeral": {}}}
EMPTY: dict[str, Any] = {"volume": {"emptyDir": {}}}


def verdict(
    check: Check,
    model: dict[str, Any],
    observed: Observed | None = None,
    **spec: Any,  # noqa: ANN401 - as in YAML
) -> CheckResult:
    document = resource(**spec).manifest()
    document["spec"]["model"] |= model
    return check(check_input(parse_resource(document, "case"), observed))


def test_no_volume() -> None:
    says(verdict(model_volume, {}), PASS, "NoModelVolume")


def test_volumes_that_hold_what_is_downloaded() -> None:
    says(verdict(model_volume, CLAIM), PASS, "Passed", "61.02 GiB")
    says(verdict(model_volume, CLAIM, replicas=2), PASS, "Passed", "claim models", "2 repl", "ReadWriteMany")
    says(verdict(model_volume, HOST | UNKNOWN), PASS, "Passed", "keeps the weights")
    says(verdict(model_volume, EPHEMERAL), PASS, "Passed", "of its own")
    says(verdict(model_volume, EMPTY | UNKNOWN), PASS, "Passed", "of its own")


def test_a_volume_to_be_made_needs_a_size() -> None:
    result = verdict(model_volume, EPHEMERAL | UNKNOWN)
    says(result, REJECT, "ModelVolumeWithoutSize", "set spec.model.weights")
    assert result.field == "spec.model.weights"


def test_a_folder_of_the_volume() -> None:
    says(verdict(model_volume, CLAIM | FOLDER), PASS, "Passed", "is read from the volume")
    says(verdict(model_volume, EMPTY | FOLDER), REJECT, "ModelNotInVolume", "empty when its pod starts")
    elsewhere = verdict(model_volume, CLAIM | FOLDER | {"name": "/models/qwen"})
    says(elsewhere, WARN, "ModelVolumeUnused", "/models/qwen", "below /var/lib/kvtier/huggingface")


def test_a_local_run_has_no_such_volume() -> None:
    says(verdict(model_volume, EPHEMERAL | UNKNOWN, on()), PASS, "NotLooked")
    says(verdict(host_path, HOST, on()), PASS, "NoHostPath")


def test_a_folder_of_the_node() -> None:
    result = verdict(host_path, HOST, replicas=2, backend="LMCache")
    says(result, WARN, "HostPathNotAccounted", "/srv/models", "61.02 GiB of weights", "privileged")
    # pods find there what another has downloaded
    assert "share" not in result.message
    assert result.field == "spec.model.volume.hostPath"
    assert "weights" not in verdict(host_path, HOST | FOLDER | {"weights": "5Gi"}).message


def test_folders_of_the_node_for_both() -> None:
    disk = {"disk": {"capacity": "100Gi", "volume": {"hostPath": {"path": "/mnt/nvme0"}}}}
    result = verdict(host_path, HOST, tiers=disk)
    says(result, WARN, "HostPathNotAccounted", "/mnt/nvme0, /srv/models", "100 GiB and 61.02 GiB of weights")
    assert result.field == "spec.tiers.disk.volume.hostPath"


@pytest.mark.parametrize("name", ["HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"])
def test_downloads_go_to_the_volume(name: str) -> None:
    env = {"env": [{"name": name, "value": "/models"}]}
    says(verdict(reserved_environment, {}, engine=env), PASS, "Passed")
    says(verdict(reserved_environment, CLAIM, engine=env), REJECT, "ReservedVariable", "spec.model.volume")


def test_nor_does_an_argument_move_them() -> None:
    engine = {"extraArgs": ["--download-dir=/models"]}
    says(verdict(reserved_arguments, {}, engine=engine), PASS, "Passed")
    says(verdict(reserved_arguments, CLAIM, engine=engine), REJECT, "ReservedArgument", "spec.model.volume")


@pytest.mark.parametrize(
    ("model", "engine", "lacking"),
    [
        (UNKNOWN, {}, "ephemeral-storage leaves"),
        (UNKNOWN | EMPTY, {}, "ephemeral-storage leaves"),
        (UNKNOWN, {"device": "cpu"}, "memory limit and ephemeral-storage leave "),
        (UNKNOWN | CLAIM, {"device": "cpu"}, "memory limit leaves"),
        (UNKNOWN | CLAIM, {}, None),
        (UNKNOWN | {"name": "/models/qwen"}, {}, None),
        (UNKNOWN, {"resources": {"requests": {"ephemeral-storage": "9Gi"}}}, None),
    ],
    ids=str,
)
def test_what_leaves_unknown_weights_out(
    model: dict[str, Any], engine: dict[str, Any], lacking: str | None
) -> None:
    result = verdict(weights_known, model, engine=engine)
    if lacking is None:
        says(result, PASS, "Unknown")
    else:
        says(result, WARN, "WeightsUnknown", lacking, "set it")
    # a local run has no pod
    if "device" not in engine:
        says(verdict(weights_known, model, on(), engine=engine), PASS, "Unknown")


@pytest.mark.parametrize(("gib", "outcome"), [(67, WARN), (68, PASS)])
@pytest.mark.parametrize("where", ["requests", "limits"])
def test_a_figure_of_its_own_below_the_weights(gib: int, outcome: object, where: str) -> None:
    engine = {"resources": {where: {"ephemeral-storage": f"{gib}Gi"}}}
    result = verdict(weights_known, {}, engine=engine)
    assert result.outcome is outcome
    assert verdict(weights_known, CLAIM, engine=engine).outcome is PASS
    if outcome is WARN:
        says(result, WARN, "StorageBelowWeights", "67Gi", "61.02 GiB of weights", "67.13 GiB")
        assert result.field == f"spec.engine.resources.{where}.ephemeral-storage"
