"""`kvtier attach` on files."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.cases.attached import LABELS, vllm_pod

from kvtier_operator.cli.attach import attach
from kvtier_operator.errors import InvalidInputError

_TIER: dict[str, Any] = {
    "apiVersion": "kvtier.dev/v1alpha1",
    "kind": "KVCacheTier",
    "metadata": {"name": "qwen"},
    "spec": {"attach": {"podSelector": {"matchLabels": LABELS}}, "tiers": {"cpu": {"capacity": "100Gi"}}},
}
_DEPLOYMENT: dict[str, Any] = {
    "kind": "Deployment",
    "apiVersion": "apps/v1",
    "metadata": {"name": "theirs"},
    "spec": {"template": vllm_pod()},
}
_PASSED_ON = "Service/front is passed on as it is: it has no pods"
_SERVICE: dict[str, Any] = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "front"}}


def _attached(folder: Path, *arguments: str, documents: tuple[dict[str, Any], ...] = ()) -> Result:
    path = folder / "all.yaml"
    path.write_text("---\n".join(json.dumps(document) + "\n" for document in documents))
    return CliRunner().invoke(attach, ["-f", str(path), *arguments])


def test_owners_objects_are_printed_in_their_order_and_their_keys_too(tmp_path: Path) -> None:
    result = _attached(tmp_path, documents=(_SERVICE, _TIER, _DEPLOYMENT))
    assert result.exit_code == 0
    service, deployment = yaml.safe_load_all(result.stdout)
    assert service == _SERVICE
    assert [*deployment] == [*_DEPLOYMENT]
    assert (
        deployment["spec"]["template"]["spec"]["initContainers"][0]["image"]
        == "registry.invalid/kvtier/connector:0.1.0"
    )
    source = tmp_path / "all.yaml"
    pods = f"{source} (document 3): Deployment/theirs spec.template.spec: "
    unpublished, passed_on, attached, memory = result.stderr.splitlines()
    assert "--kvtier-registry" in unpublished
    assert passed_on == f"{source} (document 1): {_PASSED_ON}"
    assert attached == f"{pods}has the tiers of KVCacheTier qwen"
    assert memory.startswith(f"{pods}101.15 GiB of memory more: ")


def test_the_payload_comes_as_it_is_chosen(tmp_path: Path) -> None:
    chosen = _attached(tmp_path, "--payload", "image-volume", documents=(_TIER, _DEPLOYMENT))
    spec = yaml.safe_load(chosen.stdout)["spec"]["template"]["spec"]
    assert "initContainers" not in spec
    assert spec["volumes"][0] == {
        "name": "kvtier-payload",
        "image": {"reference": "registry.invalid/kvtier/connector:0.1.0"},
    }


def test_an_owner_s_manifest_that_was_forgotten_is_asked_for(tmp_path: Path) -> None:
    result = _attached(tmp_path, documents=(_TIER,))
    assert result.exit_code == 2
    assert "no manifests of those who own the pods" in result.stderr


def test_an_object_of_a_kind_that_is_not_known_is_told_those_that_are(tmp_path: Path) -> None:
    roles = {"template": {"spec": {"roles": [{"name": "prefill", "template": vllm_pod()}]}}}
    storm = {"apiVersion": "orchestration.aibrix.ai/v1alpha1", "kind": "StormService", "spec": roles}
    result = _attached(tmp_path, documents=(_TIER, {**storm, "metadata": {"name": "qwen"}}))
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert line.endswith(
        "StormService/qwen is passed on as it is: kvtier attach finds pods only in Pod, "
        "Deployment, StatefulSet, DaemonSet, ReplicaSet, "
        "Job, Rollout, CronJob, LeaderWorkerSet, LLMInferenceService"
    )


def test_a_component_patches_what_has_the_tiers(tmp_path: Path) -> None:
    result = _attached(tmp_path, "-o", "patch", documents=(_TIER, _DEPLOYMENT, _SERVICE))
    component = yaml.safe_load(result.stdout)
    theirs = {"group": "apps", "version": "v1", "kind": "Deployment", "name": "theirs"}
    assert [patch["target"] for patch in component["patches"]] == [theirs] * 2
    operations, merge = [json.loads(patch["patch"]) for patch in component["patches"]]
    assert {operation["op"] for operation in operations} == {"replace", "test"}
    assert (merge["kind"], merge["metadata"]) == ("Deployment", {"name": "theirs"})


def test_a_difference_has_what_was_added(tmp_path: Path) -> None:
    result = _attached(tmp_path, "--diff", documents=(_TIER, _DEPLOYMENT, _SERVICE))
    assert result.stdout.startswith("--- Deployment/theirs before\n+++ Deployment/theirs after\n")
    assert "+        - name: KVTIER_ATTACH\n" in result.stdout
    assert "Service" not in result.stdout


def test_a_second_time_nothing_changes_and_that_is_a_failure(tmp_path: Path) -> None:
    once = [*yaml.safe_load_all(_attached(tmp_path, documents=(_TIER, _DEPLOYMENT)).stdout)]
    again = _attached(tmp_path, documents=(_TIER, *once))
    assert again.exit_code == 1
    assert [*yaml.safe_load_all(again.stdout)] == once
    assert again.stderr.endswith(
        "left alone: it has the tiers of KVCacheTier qwen already (AlreadyAttached)\n"
    )


def test_a_resource_with_engines_of_its_own_has_no_place_here(tmp_path: Path) -> None:
    tier = {**_TIER, "spec": {"model": {"name": "Qwen/Qwen3-32B"}, "tiers": {"cpu": {"capacity": "1Gi"}}}}
    error = _attached(tmp_path, documents=(tier, _DEPLOYMENT)).exception
    assert isinstance(error, InvalidInputError)
    with pytest.raises(InvalidInputError, match=r"spec\.attach: is required here"):
        raise error


def test_a_picker_is_told_how_much_the_tiers_hold(tmp_path: Path) -> None:
    tier = {**_TIER, "spec": _TIER["spec"] | {"model": {"name": "Qwen/Qwen3-32B"}}}
    result = _attached(tmp_path, "-o", "picker-config", "--picker-version", "v0.9.1", documents=(tier,))
    assert result.exit_code == 0
    [config] = yaml.safe_load_all(result.stdout)
    plugins = yaml.safe_load(config["data"]["epp"])["plugins"]
    [producer] = [plugin for plugin in plugins if plugin.get("name") == "cpu-prefix-cache-producer"]
    # 100 GiB of 262,144 B a token, 64 tokens an entry
    assert producer["parameters"]["lruCapacityPerServer"] == 6400


@pytest.mark.parametrize(
    ("tier", "version", "said"),
    [
        (_TIER, "0.9", r"all\.yaml: spec\.model: is required"),
        (
            {**_TIER, "spec": _TIER["spec"] | {"model": {"name": "Qwen/Qwen3-32B"}}},
            "0.8",
            "^--picker-version: '0.8' is not known: pickers are 0.9, 0.10, 1.4, 1.5$",
        ),
    ],
)
def test_what_no_picker_can_be_told(tmp_path: Path, tier: dict[str, Any], version: str, said: str) -> None:
    arguments = ("-o", "picker-config", "--picker-version", version)
    error = _attached(tmp_path, *arguments, documents=(tier,)).exception
    assert isinstance(error, InvalidInputError)
    with pytest.raises(InvalidInputError, match=said):
        raise error


@pytest.mark.parametrize("name", ["w!", "", "a b", "a=b", "app in (x),y", "x" * 64, "UPPER/app"])
def test_what_is_no_label_s_name_is_refused(tmp_path: Path, name: str) -> None:
    attach = {"podSelector": {"matchLabels": {name: "v"}}}
    result = _attached(
        tmp_path, documents=({**_TIER, "spec": {**_TIER["spec"], "attach": attach}}, _DEPLOYMENT)
    )
    assert "spec.attach.podSelector.matchLabels: " in str(result.exception)
    assert str(result.exception).endswith("is not the name of a label")
