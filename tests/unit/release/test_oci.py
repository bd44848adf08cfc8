import io
import json
import tarfile
from pathlib import Path

import pytest
from tests.unit.release.checkout import CREATED_S

from kvtier_release.commands import ReleaseError
from kvtier_release.oci import blob, image_digest, image_of_files, read_json, tar

FILES = {"manifests/a.yaml": b"a: 1\n"}


def archive(folder: Path) -> Path:
    path = folder / "image.tar"
    path.write_bytes(image_of_files(FILES, {"label": "x"}, "1.0", CREATED_S))
    return path


def test_an_image_has_its_files_and_labels(tmp_path: Path) -> None:
    with tarfile.open(archive(tmp_path)) as opened:
        manifest = read_json(opened, blob(image_digest(tmp_path / "image.tar")))
        assert read_json(opened, blob(manifest["config"]["digest"]))["config"]["Labels"] == {"label": "x"}
        [layer] = manifest["layers"]
        content = opened.extractfile(blob(layer["digest"]))
        assert content
        with tarfile.open(fileobj=io.BytesIO(content.read())) as files:
            assert files.getnames() == [*FILES]


def test_the_same_files_make_the_same_digest(tmp_path: Path) -> None:
    assert image_digest(archive(tmp_path)) == image_digest(archive(tmp_path))


def test_what_is_no_archive_is_refused_by_name(tmp_path: Path) -> None:
    wrong = tmp_path / "docker.tar"
    wrong.write_bytes(tar({"manifest.json": b"[]"}, 0))
    with pytest.raises(ReleaseError, match=r"docker\.tar is no OCI archive"):
        image_digest(wrong)
    wrong.write_bytes(b"no tar")
    with pytest.raises(ReleaseError, match=r"docker\.tar is no OCI archive"):
        image_digest(wrong)


@pytest.mark.parametrize(
    "index", [[], {}, {"manifests": 1}, {"manifests": [{}]}, {"manifests": [{"digest": 5}]}]
)
def test_an_index_that_is_none_is_refused_by_name(tmp_path: Path, index: object) -> None:
    wrong = tmp_path / "wrong.tar"
    wrong.write_bytes(tar({"index.json": json.dumps(index).encode()}, 0))
    with pytest.raises(ReleaseError, match=r"wrong\.tar is no OCI archive: ."):
        image_digest(wrong)


def test_an_archive_that_is_empty_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty.tar").touch()
    with pytest.raises(ReleaseError) as refused:
        image_digest(tmp_path / "empty.tar")
    assert "\n" not in str(refused.value)


def test_an_archive_of_two_images_is_refused(tmp_path: Path) -> None:
    two = tmp_path / "two.tar"
    two.write_bytes(tar({"index.json": json.dumps({"manifests": [{"digest": ""}] * 2}).encode()}, 0))
    with pytest.raises(ReleaseError, match="has 2 images"):
        image_digest(two)
