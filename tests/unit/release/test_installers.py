import io
import json
import re
import tarfile
from functools import cache
from typing import Any

import pytest
import yaml
from tests.unit.release.checkout import ROOT, release

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.schema.crd import crd
from kvtier_operator.planning.images import IMAGE_NAMES, PUBLISHED, ImageName
from kvtier_release.installers import (
    artifact_hub_text,
    bundle_archive,
    bundle_files,
    chart_package,
    install_text,
)
from kvtier_release.release import FILE, OPERATOR


@pytest.mark.parametrize("owner", ["", "a@example.com", "a: b # c"])
def test_it_says_what_is_known(owner: str) -> None:
    known = yaml.safe_load(artifact_hub_text("6c1c", owner))
    assert known["repositoryID"] == "6c1c"
    assert [owner["email"] for owner in known.get("owners", [])] == ([owner] if owner else [])


def test_what_is_not_known_it_leaves_open() -> None:
    text = artifact_hub_text("", "")
    assert text.startswith("# repositoryID")
    assert yaml.safe_load(text) is None


CHART = ROOT / "charts" / "tiered-prefix-cache"


@cache
def packaged() -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(chart_package(ROOT, release()))) as opened:
        read = {each.name: opened.extractfile(each) for each in opened}
        return {name: content.read() for name, content in read.items() if content}


def test_the_same_release_makes_the_same_bytes() -> None:
    assert chart_package(ROOT, release()) == chart_package(ROOT, release())


def test_it_is_the_checkout_s_chart_without_its_tests() -> None:
    of_checkout = {
        f"{CHART.name}/{path.relative_to(CHART)}": path.read_bytes()
        for path in CHART.rglob("*")
        if path.is_file() and path.parent.name != "ci"
    }
    own = {f"{CHART.name}/{name}" for name in ("Chart.yaml", FILE)}
    found = packaged()
    assert set(found) == set(of_checkout) | own
    assert {name: found[name] for name in of_checkout if name not in own} == {
        name: content for name, content in of_checkout.items() if name not in own
    }


def test_it_says_where_its_images_are() -> None:
    found = packaged()
    assert json.loads(found[f"{CHART.name}/{FILE}"])["images"] == release().images
    about = yaml.safe_load(found[f"{CHART.name}/Chart.yaml"])
    listed = yaml.safe_load(about.pop("annotations")["artifacthub.io/images"])
    assert {each["name"]: each["image"] for each in listed} == release().references()
    assert about == yaml.safe_load((CHART / "Chart.yaml").read_text())


BASE = ROOT / "manifests" / "base"


def test_it_is_the_manifests_with_the_release_s_images() -> None:
    found = {
        (document["kind"], document["metadata"]["name"]): document
        for document in yaml.safe_load_all(install_text(release()))
    }
    base = {
        (document["kind"], document["metadata"]["name"]): document
        for path in BASE.glob("*.yaml")
        if path.name != "kustomization.yaml"
        for document in yaml.safe_load_all(path.read_text())
    }
    [name] = [key for key in base if key[0] == "Deployment"]
    [container] = found[name]["spec"]["template"]["spec"]["containers"]
    [of_base] = base[name]["spec"]["template"]["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in container.pop("env")}
    assert environment.pop("KVTIER_IMAGES") == release().installed_images()
    assert container.pop("image") == release().references()["operator"]
    assert environment.items() < {each["name"]: each["value"] for each in of_base.pop("env")}.items()
    del of_base["image"]
    assert found == base


def test_namespace_and_crd_come_first() -> None:
    kinds = [document["kind"] for document in yaml.safe_load_all(install_text(release()))]
    assert kinds[:2] == ["Namespace", "CustomResourceDefinition"]


@cache
def files() -> dict[str, Any]:
    return {name: yaml.safe_load(text) for name, text in bundle_files(ROOT, release()).items()}


def version() -> dict[str, Any]:
    found: dict[str, Any] = files()["manifests/kvtier.clusterserviceversion.yaml"]
    return found


def test_its_operator_has_the_release_s_images() -> None:
    [deployed] = version()["spec"]["install"]["spec"]["deployments"]
    [container] = deployed["spec"]["template"]["spec"]["containers"]
    assert container["image"] == release().references()["operator"]


def test_its_operator_is_what_openshift_takes() -> None:
    """The SCC restricted-v2 refuses users that are named."""
    [deployed] = version()["spec"]["install"]["spec"]["deployments"]
    security = deployed["spec"]["template"]["spec"]["securityContext"]
    assert security == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    image = (ROOT / "operator" / "Containerfile").read_text()
    assert re.search(r"^USER [1-9]\d*", image, re.MULTILINE)


def test_it_lists_every_image_that_a_pod_may_pull() -> None:
    listed = {image["name"]: image["image"] for image in version()["spec"]["relatedImages"]}
    assert listed.keys() == {OPERATOR, *IMAGE_NAMES}
    assert listed.items() >= release().references().items()
    assert listed[ImageName.ENVOY] == PUBLISHED[ImageName.ENVOY]


def test_its_crd_is_the_chart_s() -> None:
    [owned] = version()["spec"]["customresourcedefinitions"]["owned"]
    assert files()[f"manifests/{owned['name']}.yaml"] == crd()


def test_its_example_is_accepted() -> None:
    [example] = json.loads(version()["metadata"]["annotations"]["alm-examples"])
    assert parse_resource(example, "the bundle").metadata.name


def test_who_may_edit_a_namespace_may_not_write_tiers_without_the_policy() -> None:
    """OLM installs no admission policy."""
    roles = [file for file in files().values() if file.get("kind") == "ClusterRole"]
    assert [role["metadata"]["name"] for role in roles] == ["kvtier-operator-view"]


def test_the_same_release_makes_the_same_image() -> None:
    assert bundle_archive(ROOT, release()) == bundle_archive(ROOT, release())
