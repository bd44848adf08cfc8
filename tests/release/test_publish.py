"""`make publish` to a real registry: everything by its digest, and the chart names where it was pushed."""

import json
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.harness.api.commands import Command
from tests.cluster.harness.images.registry import Registry
from tests.cluster.harness.programs.tools import Say, program
from tests.release.command import Release

from kvtier_common.version import KVTIER_VERSION
from kvtier_release.oci import image_digest, image_of_files

ACCEPT = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json"
OF_IMAGES = ("operator", "picker", "connector")


@pytest.fixture(scope="module")
def published(release: Release, dist: Path, registry: Registry) -> list[str]:
    """The references that it prints."""
    done = release("publish", "--registry", f"{registry.name}/team", "--dist", dist)
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def helm(tmp_path: Path, say: Say) -> Command:
    return Command(program("helm", say), tmp_path / "no-cluster", tmp_path)


def asked(registry: Registry, path: str) -> dict[str, Any]:
    request = urllib.request.Request(f"http://{registry.name}/v2/{path}", headers={"Accept": ACCEPT})
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - as above
        found: dict[str, Any] = json.load(answer)
        return found


def test_every_image_is_there_by_the_digest_of_its_archive(
    published: list[str], registry: Registry, dist: Path
) -> None:
    for name in (*OF_IMAGES, "bundle"):
        digest = image_digest(dist / "oci" / f"{name}.tar")
        assert f"{registry.name}/team/kvtier/{name}:{KVTIER_VERSION}@{digest}" in published
        by_digest = asked(registry, f"team/kvtier/{name}/manifests/{digest}")
        assert asked(registry, f"team/kvtier/{name}/manifests/{KVTIER_VERSION}") == by_digest


@pytest.mark.usefixtures("published")
def test_the_connector_is_there_for_each_platform(registry: Registry) -> None:
    """Nodes of an arm64 pool pull by the digest that all nodes have."""
    at = "team/kvtier/connector/manifests"
    entries = asked(registry, f"{at}/{KVTIER_VERSION}")["manifests"]
    assert {entry["platform"]["architecture"] for entry in entries} == {"amd64", "arm64"}
    assert len({asked(registry, f"{at}/{entry['digest']}")["layers"][0]["digest"] for entry in entries}) == 2


@pytest.mark.usefixtures("published")
def test_an_image_s_sbom_refers_to_it(registry: Registry, dist: Path) -> None:
    digest = image_digest(dist / "oci" / "operator.tar")
    # distribution has no referrers API: its clients keep the list under a tag (distribution-spec v1.1)
    found = asked(registry, f"team/kvtier/operator/manifests/{digest.replace(':', '-')}")["manifests"]
    assert [each["artifactType"] for each in found] == ["application/vnd.cyclonedx+json"]


@pytest.mark.usefixtures("published")
def test_the_chart_from_the_registry_has_its_images_there(
    helm: Command, registry: Registry, dist: Path
) -> None:
    chart = (f"oci://{registry.name}/team/kvtier/charts/tiered-prefix-cache", "--version", KVTIER_VERSION)
    rendered = helm("template", "kvtier", *chart, "--plain-http")
    start = f"{registry.name}/team/kvtier"
    container = operator_of(rendered)
    operator = image_digest(dist / "oci" / "operator.tar")
    assert container["image"] == f"{start}/operator@{operator}"
    assert environment_of(container)["KVTIER_IMAGES"].split(",") == [
        f"connector={start}/connector@{image_digest(dist / 'oci' / 'connector.tar')}",
        f"doctor={start}/operator@{operator}",
        f"pickerBuiltin={start}/picker@{image_digest(dist / 'oci' / 'picker.tar')}",
    ]


@pytest.mark.usefixtures("published")
def test_values_are_stronger_than_the_release(helm: Command, dist: Path) -> None:
    chart = dist / f"tiered-prefix-cache-{KVTIER_VERSION}.tgz"
    own = "images.connector=own.example/connector:1"
    container = operator_of(
        helm("template", "kvtier", chart, "--set", f"global.imageRegistry=mirror.example,{own}")
    )
    operator = image_digest(dist / "oci" / "operator.tar")
    assert container["image"] == f"mirror.example/kvtier/operator@{operator}"
    images = environment_of(container)["KVTIER_IMAGES"].split(",")
    assert images[:2] == [own.removeprefix("images."), f"doctor=mirror.example/kvtier/operator@{operator}"]

    container = operator_of(
        helm("template", "kvtier", chart, "--set", "image.repository=own.example/operator")
    )
    assert container["image"] == f"own.example/operator:{KVTIER_VERSION}"
    assert "doctor=" not in environment_of(container)["KVTIER_IMAGES"]


@pytest.mark.usefixtures("published")
def test_files_beside_it_name_the_same_images(registry: Registry, dist: Path) -> None:
    start = f"{registry.name}/team/kvtier/operator@"
    for name in ("install.yaml", "bundle/manifests/kvtier.clusterserviceversion.yaml"):
        text = (dist / name).read_text()
        assert f"image: {start}" in text
        assert "elsewhere.example" not in text


def test_again_it_is_the_same(release: Release, published: list[str], registry: Registry, dist: Path) -> None:
    done = release("publish", "--registry", f"{registry.name}/team", "--dist", dist)
    assert (done.returncode, done.stdout.splitlines()) == (0, published)


@pytest.mark.usefixtures("published")
def test_another_image_under_the_same_version_is_refused(
    release: Release, registry: Registry, archives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    other = tmp_path / "operator.tar"
    other.write_bytes(image_of_files({"name": b"another"}, {}, "built", 0))
    at = ("--registry", f"{registry.name}/team", "--dist", tmp_path / "dist")
    done = release("make", *at, "--archives", tmp_path, "--image", "operator")
    assert not done.returncode, done.stderr
    done = release("publish", *at)
    [line] = done.stderr.splitlines()
    assert done.returncode == 1
    there = image_digest(archives / "operator.tar")
    assert line == (
        f"release: {registry.name}/team/kvtier/operator:{KVTIER_VERSION} is {there} already, "
        "and what is published stays: raise the version"
    )


def test_nothing_is_pushed_of_a_release_that_lacks_an_image(
    release: Release, registry: Registry, dist: Path, tmp_path: Path
) -> None:
    lacking, at = tmp_path / "dist", f"{registry.name}/lacking"
    shutil.copytree(dist, lacking)
    (lacking / "oci" / "picker.tar").unlink()
    done = release("publish", "--registry", at, "--dist", lacking)
    [line] = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    picker = f"kvtier/picker@{image_digest(dist / 'oci' / 'picker.tar')}"
    assert line.startswith(f"release: the release names {picker}, which is neither in it nor at {at}: copy")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        asked(registry, f"lacking/kvtier/operator/manifests/{KVTIER_VERSION}")


def test_without_cosign_nothing_is_pushed(release: Release, dist: Path, tmp_path: Path) -> None:
    shutil.copytree(dist, tmp_path / "dist")
    done = release("publish", "--registry", "localhost:9", "--dist", tmp_path / "dist", "--key", "cosign.key")
    assert done.stderr.startswith("release: cosign is missing: ")


def test_a_registry_that_does_not_answer_is_one_line(release: Release, dist: Path, tmp_path: Path) -> None:
    # for it the files would be written anew, which other tests read
    shutil.copytree(dist, tmp_path / "dist")
    done = release("publish", "--registry", "localhost:9", "--dist", tmp_path / "dist")
    [line] = done.stderr.splitlines()
    assert done.returncode == 1
    assert re.match(r"release: oras resolve: .*localhost:9", line)


def test_a_folder_without_a_release_is_one_line(release: Release, tmp_path: Path) -> None:
    done = release("publish", "--registry", "localhost:9", "--dist", tmp_path)
    [line] = done.stderr.splitlines()
    assert line.startswith(f"release: {tmp_path} has no release: run make release")


def operator_of(rendered: str) -> dict[str, Any]:
    [container] = [
        box
        for document in yaml.safe_load_all(rendered)
        if document and document["kind"] == "Deployment"
        for box in document["spec"]["template"]["spec"]["containers"]
    ]
    found: dict[str, Any] = container
    return found


def environment_of(container: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"]}
