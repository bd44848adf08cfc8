"""Checks of weights, of where they are, and of the names that clients ask for."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import check_input, on, resource

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.checks.arguments import reserved_arguments
from kvtier_operator.planning.checks.check import Check
from kvtier_operator.planning.checks.disk import host_path
from kvtier_operator.planning.checks.environment import reserved_environment
from kvtier_operator.planning.checks.model import served_names
from kvtier_operator.planning.checks.weights import (
    model_source,
    model_volume,
    weights_known,
)
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.verdict import CheckResult

UNKNOWN = {"name": "a/b", "geometry": {"kvBytesPerToken": 1000}}
FOLDER = UNKNOWN | {"name": "/var/lib/kvtier/huggingface/qwen"}
CLAIM = {"volume": {"persistentVolumeClaim": {"claimName": "models"}}}
HOST = {"volume": {"hostPath": {"path": "/srv/models"}}}
EPHEMERAL: dict[str, Any] = {"volume": {"ephemeral": {}}}
EMPTY: dict[str, Any] = {"volume": {"emptyDir": {}}}


def verdict_on_model(
    check: Check,
    model: dict[str, Any],
    observed: Observed | None = None,
    **spec: Any,  # noqa: ANN401 - as in YAML
) -> CheckResult:
    document = resource(**spec).manifest()
    document["spec"]["model"] |= model
    return check(check_input(parse_resource(document, "case"), observed))


def test_no_volume() -> None:
    says(verdict_on_model(model_volume, {}), PASS, "NoModelVolume")


def test_volumes_that_hold_what_is_downloaded() -> None:
    says(verdict_on_model(model_volume, CLAIM), PASS, "Passed", "61.02 GiB")
    says(
        verdict_on_model(model_volume, CLAIM, replicas=2),
        PASS,
        "Passed",
        "claim models",
        "2 pods",
        "ReadWriteMany",
    )
    says(verdict_on_model(model_volume, HOST | UNKNOWN), PASS, "Passed", "keeps the weights")
    says(verdict_on_model(model_volume, EPHEMERAL), PASS, "Passed", "of its own")
    says(verdict_on_model(model_volume, EMPTY | UNKNOWN), PASS, "Passed", "of its own")


def test_a_volume_to_be_made_needs_a_size() -> None:
    result = verdict_on_model(model_volume, EPHEMERAL | UNKNOWN)
    says(result, REJECT, "ModelVolumeWithoutSize", "set spec.model.weights")
    assert result.field == "spec.model.weights"


def test_a_folder_of_the_volume() -> None:
    says(verdict_on_model(model_volume, CLAIM | FOLDER), PASS, "Passed", "is read from the volume")
    says(
        verdict_on_model(model_volume, EMPTY | FOLDER),
        REJECT,
        "ModelNotInVolume",
        "empty when its pod starts",
    )
    elsewhere = verdict_on_model(model_volume, CLAIM | FOLDER | {"name": "/models/qwen"})
    says(elsewhere, WARN, "ModelVolumeUnused", "/models/qwen", "below /var/lib/kvtier/huggingface")


SOURCES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"source": "pvc://models/qwen"}, "/var/lib/kvtier/model/qwen is claim models's, for reading"),
    ({"source": "oci://r.example/m:1#qwen"}, "/var/lib/kvtier/model/qwen is in image r.example/m:1"),
    ({"source": "file:///srv/qwen"}, "/srv/qwen must be on every node"),
    ({"source": "s3://b/m", "fetcher": {"image": "a/b"}}, "the fetcher brings s3://b/m"),
)


@pytest.mark.parametrize(("model", "words"), SOURCES, ids=str)
def test_where_a_model_comes_from(model: dict[str, Any], words: str) -> None:
    says(verdict_on_model(model_source, model), PASS, "Passed", words)
    says(verdict_on_model(model_source, model, on()), PASS, "NotLooked", "a local run takes")
    says(verdict_on_model(model_source, {}), PASS, "NoModelSource")


def test_a_source_that_several_pods_read() -> None:
    claim = {"source": "pvc://models"}
    assert "ReadWriteMany" in verdict_on_model(model_source, claim, replicas=2).message
    assert "ReadWriteMany" not in verdict_on_model(model_source, claim, replicas=1).message


@pytest.mark.parametrize(
    ("volume", "replicas", "outcome"),
    [({}, 2, PASS), (EPHEMERAL, 2, PASS), (CLAIM, 1, PASS), (CLAIM, 2, WARN), (HOST, 2, WARN)],
    ids=str,
)
def test_fetchers_that_write_into_one_folder(volume: dict[str, Any], replicas: int, outcome: object) -> None:
    result = verdict_on_model(model_source, {**SOURCES[-1][0], **volume}, replicas=replicas)
    assert result.outcome is outcome
    if outcome is WARN:
        says(result, WARN, "FetchersShareVolume", f"{replicas} pods", "pvc://")
        assert result.field == "spec.model.fetcher"


@pytest.mark.parametrize(
    ("volume", "disk", "backend", "outcome"),
    [
        ({}, HOST["volume"], "KVTier", WARN),
        (EPHEMERAL, HOST["volume"], "KVTier", WARN),
        (CLAIM, HOST["volume"], "KVTier", PASS),
        ({}, EMPTY["volume"], "KVTier", PASS),
        ({}, HOST["volume"], "LMCache", PASS),
    ],
    ids=str,
)
def test_weights_that_are_new_to_a_disk_tier(
    volume: dict[str, Any], disk: dict[str, Any], backend: str, outcome: object
) -> None:
    """Source: kvtier_connector.vllm.fingerprint."""
    tiers = {"disk": {"capacity": "100Gi", "volume": disk}}
    result = verdict_on_model(model_source, {**SOURCES[-1][0], **volume}, tiers=tiers, backend=backend)
    assert result.outcome is outcome
    if outcome is WARN:
        says(result, WARN, "DiskStartsEmpty", "starts empty", "spec.model.volume")


def test_a_fetchers_volume_needs_a_size() -> None:
    fetched = SOURCES[-1][0]
    says(verdict_on_model(model_volume, EPHEMERAL | fetched), PASS, "Passed", "of its own")
    says(verdict_on_model(model_volume, EPHEMERAL | UNKNOWN | fetched), REJECT, "ModelVolumeWithoutSize")


def test_a_folder_of_the_node_for_reading() -> None:
    result = verdict_on_model(host_path, {"source": "file:///srv/qwen"})
    says(result, WARN, "HostPathNotAccounted", "/srv/qwen on the node", "privileged")
    assert result.field == "spec.model.source"
    assert "root" not in result.message
    says(verdict_on_model(host_path, {"source": "file:///srv/qwen"}, on()), PASS, "NoHostPath")


def test_the_hubs_cache_may_be_anywhere_beside_a_source() -> None:
    env = {"env": [{"name": "HF_HOME", "value": "/models"}]}
    says(verdict_on_model(reserved_environment, CLAIM | SOURCES[-1][0], engine=env), PASS, "Passed")


def test_a_local_run_has_no_such_volume() -> None:
    says(verdict_on_model(model_volume, EPHEMERAL | UNKNOWN, on()), PASS, "NotLooked")
    says(verdict_on_model(host_path, HOST, on()), PASS, "NoHostPath")


def test_a_folder_of_the_node() -> None:
    result = verdict_on_model(host_path, HOST, replicas=2, backend="LMCache")
    says(result, WARN, "HostPathNotAccounted", "/srv/models", "61.02 GiB of weights", "privileged")
    # pods find there what another has downloaded
    assert "share" not in result.message
    assert result.field == "spec.model.volume.hostPath"
    assert "weights" not in verdict_on_model(host_path, HOST | FOLDER | {"weights": "5Gi"}).message


def test_folders_of_the_node_for_both() -> None:
    disk = {"disk": {"capacity": "100Gi", "volume": {"hostPath": {"path": "/mnt/nvme0"}}}}
    result = verdict_on_model(host_path, HOST, tiers=disk)
    says(result, WARN, "HostPathNotAccounted", "/mnt/nvme0, /srv/models", "100 GiB and 61.02 GiB of weights")
    assert result.field == "spec.tiers.disk.volume.hostPath"


@pytest.mark.parametrize("name", ["HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"])
def test_downloads_go_to_the_volume(name: str) -> None:
    env = {"env": [{"name": name, "value": "/models"}]}
    says(verdict_on_model(reserved_environment, {}, engine=env), PASS, "Passed")
    says(
        verdict_on_model(reserved_environment, CLAIM, engine=env),
        REJECT,
        "ReservedVariable",
        "spec.model.volume",
    )


def test_nor_does_an_argument_move_them() -> None:
    engine = {"extraArgs": ["--download-dir=/models"]}
    says(verdict_on_model(reserved_arguments, {}, engine=engine), PASS, "Passed")
    says(
        verdict_on_model(reserved_arguments, CLAIM, engine=engine),
        REJECT,
        "ReservedArgument",
        "spec.model.volume",
    )


@pytest.mark.parametrize(
    ("model", "engine", "lacking"),
    [
        (UNKNOWN, {}, "pod's ephemeral-storage; set it"),
        (UNKNOWN | EMPTY, {}, "pod's ephemeral-storage; set it"),
        (UNKNOWN, {"env": [{"name": "HF_HOME", "value": "/models"}]}, "pod's ephemeral-storage; set it"),
        (UNKNOWN, {"device": "cpu"}, "pod's memory limit and ephemeral-storage; set it"),
        (UNKNOWN | CLAIM, {"device": "cpu"}, "pod's memory limit; set it"),
        (UNKNOWN | CLAIM, {}, None),
        (UNKNOWN | {"source": "oci://r.example/m:1"}, {}, "ephemeral-storage; set it"),
        (UNKNOWN | SOURCES[-1][0], {}, "ephemeral-storage; set it"),
        (UNKNOWN | {"source": "pvc://models"}, {}, None),
        (UNKNOWN | {"name": "/models/qwen"}, {}, None),
        (UNKNOWN, {"resources": {"requests": {"ephemeral-storage": "9Gi"}}}, None),
    ],
    ids=str,
)
def test_what_leaves_unknown_weights_out(
    model: dict[str, Any], engine: dict[str, Any], lacking: str | None
) -> None:
    result = verdict_on_model(weights_known, model, engine=engine)
    if lacking is None:
        says(result, PASS, "Unknown")
    else:
        says(result, WARN, "WeightsUnknown", lacking, "set it")
    # a local run has no pod
    if "device" not in engine:
        says(verdict_on_model(weights_known, model, on(), engine=engine), PASS, "Unknown")


@pytest.mark.parametrize(("engine", "is_told"), [({"gpu": "h100"}, True), ({"kvCacheMemory": "20Gi"}, False)])
def test_what_unknown_weights_leave_unchecked(engine: dict[str, Any], is_told: bool) -> None:
    result = verdict_on_model(weights_known, UNKNOWN, engine=engine)
    says(result, WARN, "WeightsUnknown", "otherwise kvtier leaves them out")
    assert ("checks neither whether they fit" in result.message) is is_told


def test_a_folder_is_in_the_engines_container() -> None:
    folder: dict[str, Any] = UNKNOWN | {"name": "/models/x"}
    result = verdict_on_model(model_source, folder)
    says(result, WARN, "ModelNotMounted", "file:///models/x", "pvc://", "spec.model.source")
    assert result.field == "spec.model.name"
    mount = {"name": "models", "mountPath": "/models"}
    template = {
        "spec": {
            "containers": [{"name": "engine", "volumeMounts": [mount]}],
            "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}],
        }
    }
    says(verdict_on_model(model_source, folder, engine={"podTemplate": template}), PASS, "Passed", "mounted")
    says(verdict_on_model(model_source, folder, engine={"image": "own/vllm:1"}), PASS, "Passed", "own/vllm:1")
    says(verdict_on_model(model_source, folder, on()), PASS, "NoModelSource")
    below = verdict_on_model(model_source, UNKNOWN | {"name": "/var/lib/kvtier/huggingface/x"})
    says(below, WARN, "ModelNotMounted")  # no volume


def test_a_bucket_is_streamed() -> None:
    bucket: dict[str, Any] = UNKNOWN | {"name": "s3://bucket/x", "weights": "60Gi"}
    says(verdict_on_model(model_source, bucket), WARN, "BucketIsName", "ask for s3://bucket/x", "servedNames")
    named = bucket | {"servedNames": ["chat"]}
    says(verdict_on_model(model_source, named), PASS, "Passed", "downloads none")
    claim = {"persistentVolumeClaim": {"claimName": "kv"}}
    tiers = {"cpu": {"capacity": "100Gi"}, "disk": {"capacity": "1Ti", "volume": claim}}
    says(
        verdict_on_model(model_source, named, tiers=tiers), WARN, "WeightsKnownByPath", "a path of their own"
    )
    says(verdict_on_model(model_volume, named | CLAIM), WARN, "ModelVolumeUnused", "streams")


@pytest.mark.parametrize(("gib", "outcome"), [(67, WARN), (68, PASS)])
@pytest.mark.parametrize("where", ["requests", "limits"])
def test_a_figure_of_its_own_below_the_weights(gib: int, outcome: object, where: str) -> None:
    engine = {"resources": {where: {"ephemeral-storage": f"{gib}Gi"}}}
    result = verdict_on_model(weights_known, {}, engine=engine)
    assert result.outcome is outcome
    assert verdict_on_model(weights_known, CLAIM, engine=engine).outcome is PASS
    if outcome is WARN:
        says(result, WARN, "StorageBelowWeights", "67Gi", "61.02 GiB of weights", "67.13 GiB")
        assert result.field == f"spec.engine.resources.{where}.ephemeral-storage"


def test_names() -> None:
    says(verdict(served_names, resource()), PASS, "Passed", "Qwen/Qwen3-32B")
    says(
        verdict(served_names, resource(model_fields={"servedNames": ["chat"]})),
        PASS,
        "Passed",
        "ask for chat",
    )
    two = {"servedNames": ["chat", "gpt"]}
    says(verdict(served_names, resource(model_fields=two)), WARN, "NamesCountedApart", "a model of its own")
    router = {"flavor": "builtin", "kvEvents": True}
    told = verdict(served_names, resource(model_fields=two, router=router))
    says(told, WARN, "NamesCountedApart", "by chat alone")


@pytest.mark.parametrize(
    ("fields", "where", "words"),
    [
        ({"servedNames": ["-x"]}, "servedNames[0]", "is not a valid model name"),
        ({"servedNames": ["a", "a"]}, "servedNames[1]", "there twice"),
        (
            {"loraModules": [{"name": "a=b", "source": "x/y"}]},
            "loraModules[0].name",
            "is not a valid model name",
        ),
        ({"loraModules": [{"name": "a", "source": "x y"}]}, "loraModules[0].source", "is not an adapter"),
        ({"loraModules": [{"name": "a"}]}, "loraModules[0].source", "is required"),
        (
            {"loraModules": [{"name": "Qwen/Qwen3-32B", "source": "x/y"}]},
            "loraModules",
            "the name of the model",
        ),
        (
            {"servedNames": ["chat"], "loraModules": [{"name": "chat", "source": "x"}]},
            "loraModules",
            "name of the",
        ),
    ],
)
def test_what_is_no_name(fields: dict[str, Any], where: str, words: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        resource(model_fields=fields)
    [problem] = refused.value.problems
    assert problem.field == f"spec.model.{where}"
    assert words in problem.message
