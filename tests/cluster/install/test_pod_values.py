"""What values of the chart make of the operator's pod and of that of `helm test`, by the real helm."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.harness.api.commands import Command
from tests.cluster.harness.operator.places import CHART, SYSTEM

from kvtier_operator.planning.base.owner_policy import OwnerPolicy, policy_of_text
from kvtier_operator.planning.images import IMAGE_NAMES, image_source

MIRROR = CHART / "ci" / "mirror-values.yaml"
EVERYTHING = CHART / "ci" / "everything-values.yaml"


def test_images_from_elsewhere_reach_the_operator_s_pod_and_its_process(helm: Command) -> None:
    pod = _operator_pod(helm, "--values", MIRROR)
    [container] = pod["containers"]
    assert container["image"] == f"registry.example:5000/mirror/kvtier/operator@sha256:{'0' * 64}"
    assert pod["imagePullSecrets"] == [{"name": "mirror"}, {"name": "more"}]
    environment = {each["name"]: each["value"] for each in container["env"]}
    source = image_source(
        registry=environment["KVTIER_IMAGE_REGISTRY"],
        repository=environment["KVTIER_REPOSITORY"],
        references=environment["KVTIER_IMAGES"].split(","),
        pull_secrets=environment["KVTIER_IMAGE_PULL_SECRETS"].split(","),
    )
    assert source.registry == "registry.example:5000/mirror"
    assert source.references == yaml.safe_load(MIRROR.read_text())["images"]
    assert set(source.references) == set(IMAGE_NAMES)
    assert source.pull_secrets == ("mirror", "more")


@pytest.mark.parametrize(
    "repository", ["kvtier/operator", "op", "mirror.example/op", "localhost/op", "m:5000/op"]
)
def test_operator_and_doctor_agree_on_the_registry(helm: Command, repository: str) -> None:
    given = ("--set", f"global.imageRegistry=registry.example,image.repository={repository}")
    image = _operator_pod(helm, *given)["containers"][0]["image"]
    doctor = image_source(registry="registry.example", repository=repository).doctor()
    assert image.rpartition(":")[0] == doctor.rpartition(":")[0]


def test_values_without_what_charts_share(helm: Command) -> None:
    """An umbrella chart may have `global: null`."""
    image = _operator_pod(helm, "--set", "global=null")["containers"][0]["image"]
    assert image == _operator_pod(helm)["containers"][0]["image"]


def test_the_owner_s_limits_reach_the_process(helm: Command, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    limits = {"hostPath": ["/it's/a\"b"], "hostNames": ["*.example"], "images": []}
    values.write_text(yaml.safe_dump({"operator": {"policy": limits}}))
    [container] = _operator_pod(helm, "--values", values)["containers"]
    environment = {each["name"]: each["value"] for each in container["env"]}
    told = policy_of_text(environment["KVTIER_POLICY"], "the pod")
    assert told == OwnerPolicy(host_path=("/it's/a\"b",), images=(), host_names=("*.example",))


def test_further_variables_and_objects(helm: Command) -> None:
    [container] = _operator_pod(helm, "--values", EVERYTHING)["containers"]
    proxy, authority, token = container["env"][-3:]
    [mount] = container["volumeMounts"]
    assert authority["value"].startswith(f"{mount['mountPath']}/")
    assert proxy == {"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"}
    assert token["valueFrom"]["secretKeyRef"]["name"] == "tokens"
    rendered = yaml.safe_load_all(helm("template", "kvtier", CHART, "--values", EVERYTHING))
    of_maps = [
        document["metadata"]["name"] for document in rendered if document and document["kind"] == "ConfigMap"
    ]
    assert "kvtier-note" in of_maps


@pytest.mark.parametrize(
    ("given", "user"),
    [
        ((), 65532),
        (("--api-versions", "security.openshift.io/v1"), None),
        (("--set", "openshift=force"), None),
        (("--api-versions", "security.openshift.io/v1", "--set", "openshift=disabled"), 65532),
        (("--set", "operator.podSecurityContext.runAsUser=null"), None),
        (("--set", "operator.podSecurityContext.runAsUser=7"), 7),
        # what helm upgrade --reuse-values leaves
        (("--set", "operator.podSecurityContext=null,openshift=null"), 65532),
    ],
    ids=str,
)
def test_whose_the_user_is(helm: Command, given: tuple[str, ...], user: int | None) -> None:
    for pod in (_operator_pod(helm, *given), _pod_of_test(helm, *given)):
        assert pod["securityContext"].get("runAsUser") == user
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        [container] = pod["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True


def _operator_pod(helm: Command, *values: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = _only(helm, "Deployment", *values)["spec"]["template"]["spec"]
    return found


def _pod_of_test(helm: Command, *values: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = _only(helm, "Pod", *values)["spec"]
    return found


def _only(helm: Command, kind: str, *values: str | Path) -> dict[str, Any]:
    rendered = helm("template", "kvtier", CHART, "--namespace", SYSTEM, *values)
    [found] = [document for document in yaml.safe_load_all(rendered) if document and document["kind"] == kind]
    only: dict[str, Any] = found
    return only
