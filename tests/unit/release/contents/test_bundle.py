import json
import re
from typing import Any

import yaml
from tests.unit.release.checkout import ROOT, release

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.schema.crd import crd
from kvtier_operator.planning.pod.images.published import IMAGE_NAMES, PUBLISHED, ImageName
from kvtier_release.installers import bundle_archive, bundle_files
from kvtier_release.release import OPERATOR


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
    listed = {each["name"]: each["image"] for each in version()["spec"]["relatedImages"]}
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
    roles = [each for each in files().values() if each.get("kind") == "ClusterRole"]
    assert [role["metadata"]["name"] for role in roles] == ["kvtier-operator-view"]


def test_the_same_release_makes_the_same_image() -> None:
    assert bundle_archive(ROOT, release()) == bundle_archive(ROOT, release())
