import io
import json
import tarfile
from pathlib import Path

import pytest
from tests.unit.release.checkout import CREATED_S

from kvtier_release.commands import ReleaseError
from kvtier_release.oci import blob, copy_tar, image_digest, image_of_files, read_json, tar, tar_gz

SORTED_FILES = {"b/two": b"2", "a": b"1"}


def test_the_same_files_make_the_same_bytes_in_any_order() -> None:
    assert tar_gz(SORTED_FILES, 7) == tar_gz(dict(reversed(SORTED_FILES.items())), 7)
    assert tar_gz(SORTED_FILES, 7) != tar_gz(SORTED_FILES, 8)


def test_it_says_nothing_of_who_made_it() -> None:
    with tarfile.open(fileobj=io.BytesIO(tar_gz(SORTED_FILES, 7))) as opened:
        entries = opened.getmembers()
    assert [entry.name for entry in entries] == ["a", "b/two"]
    assert {(entry.uid, entry.gid, entry.uname, entry.mtime, entry.mode) for entry in entries} == {
        (0, 0, "", 7, 0o644)
    }


def test_a_copy_is_the_same_whoever_wrote_the_archive_and_when(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name, content in SORTED_FILES.items():
        (tmp_path / name).write_bytes(content)
    for order in (SORTED_FILES, reversed(SORTED_FILES)):
        with tarfile.open(tmp_path / "written.tar", "w") as written:
            written.add(tmp_path / "b", "b", recursive=False)
            for name in order:
                written.add(tmp_path / name, name)
        copy_tar(tmp_path / "written.tar", tmp_path / "copy.tar", 7)
        assert (tmp_path / "copy.tar").read_bytes() == tar(SORTED_FILES, 7)


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
