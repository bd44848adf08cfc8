import io
import tarfile

from kvtier_release.archive import tar_gz

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
