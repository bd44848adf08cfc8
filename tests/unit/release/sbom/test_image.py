import json
from pathlib import Path

import pytest
from tests.unit.release.checkout import CREATED_S
from tests.unit.release.sbom.validated import validated

from kvtier_release.commands import ReleaseError
from kvtier_release.oci import Content, blob, tar, tar_gz
from kvtier_release.sbom import image_sbom

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
    contents = [Content("layer", each) for each in layers]
    manifest = Content("manifest", json.dumps({"layers": [each.descriptor() for each in contents]}).encode())
    index = json.dumps({"manifests": [manifest.descriptor()]}).encode()
    blobs = {blob(each.digest): each.bytes for each in (*contents, manifest)}
    target.write_bytes(tar({"index.json": index, **blobs}, 0))
    return target


def test_it_has_debian_s_packages_and_python_s_of_all_layers(tmp_path: Path) -> None:
    lower = tar_gz({"var/lib/dpkg/status": STATUS.encode(), "usr/lib/os-release": b'ID="ubuntu"\n'}, 0)
    upper = tar({f"./{SITE}/Some_Thing-1.dist-info/METADATA": metadata("Some_Thing", "1")}, 0)
    found = validated(image_sbom("operator", image(tmp_path / "x.tar", lower, upper), CREATED_S))
    assert [each["purl"] for each in found["components"]] == [
        "pkg:deb/ubuntu/libc6@2.36-9",
        "pkg:pypi/some-thing@1",
    ]


@pytest.mark.parametrize("mark", [f"{SITE}/.wh.a-1.dist-info", f"{SITE}/.wh..wh..opq"])
def test_what_an_upper_layer_takes_away_is_not_there(tmp_path: Path, mark: str) -> None:
    lower = tar({f"{SITE}/a-1.dist-info/METADATA": metadata("a", "1")}, 0)
    upper = tar({mark: b"", f"{SITE}/a-2.dist-info/METADATA": metadata("a", "2")}, 0)
    found = validated(image_sbom("operator", image(tmp_path / "x.tar", lower, upper), CREATED_S))
    assert [each["purl"] for each in found["components"]] == ["pkg:pypi/a@2"]


def test_images_of_several_platforms_are_refused_by_name(tmp_path: Path) -> None:
    """What docker writes, unless it is told to attest nothing."""
    index = Content("index", json.dumps({"manifests": []}).encode())
    whole = json.dumps({"manifests": [index.descriptor()]}).encode()
    (tmp_path / "x.tar").write_bytes(tar({"index.json": whole, blob(index.digest): index.bytes}, 0))
    with pytest.raises(ReleaseError, match=r"x\.tar has images of several platforms"):
        image_sbom("operator", tmp_path / "x.tar", CREATED_S)


def test_layers_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"x\.tar: its layers cannot be read"):
        image_sbom("operator", image(tmp_path / "x.tar", b"no tar"), CREATED_S)
