import io
import tarfile
from pathlib import Path

from kvtier_release.oci import copy_tar, tar, tar_gz

FILES = {"b/two": b"2", "a": b"1"}


def test_the_same_files_make_the_same_bytes_in_any_order() -> None:
    assert tar_gz(FILES, 7) == tar_gz(dict(reversed(FILES.items())), 7)
    assert tar_gz(FILES, 7) != tar_gz(FILES, 8)


def test_it_says_nothing_of_who_made_it() -> None:
    with tarfile.open(fileobj=io.BytesIO(tar_gz(FILES, 7))) as opened:
        entries = opened.getmembers()
    assert [each.name for each in entries] == ["a", "b/two"]
    assert {(each.uid, each.gid, each.uname, each.mtime, each.mode) for each in entries} == {
        (0, 0, "", 7, 0o644)
    }


def test_a_copy_is_the_same_whoever_wrote_the_archive_and_when(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    for order in (FILES, reversed(FILES)):
        with tarfile.open(tmp_path / "written.tar", "w") as written:
            written.add(tmp_path / "b", "b", recursive=False)
            for name in order:
                written.add(tmp_path / name, name)
        copy_tar(tmp_path / "written.tar", tmp_path / "copy.tar", 7)
        assert (tmp_path / "copy.tar").read_bytes() == tar(FILES, 7)
