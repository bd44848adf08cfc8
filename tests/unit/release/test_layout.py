from pathlib import Path

import pytest

from kvtier_common.version import KVTIER_VERSION
from kvtier_release.commands import ReleaseError
from kvtier_release.make import clear

OF_A_RELEASE = (f"kvtier-{KVTIER_VERSION}.tar.gz", "kvtier-0.0.1-py3-none-any.whl", "release.json")


def test_an_earlier_release_makes_room_and_the_folder_stays(tmp_path: Path) -> None:
    for name in OF_A_RELEASE:
        (tmp_path / name).touch()
    (tmp_path / "oci").mkdir()
    (tmp_path / "oci" / "operator.tar").touch()
    inode = tmp_path.stat().st_ino
    clear(tmp_path, None)
    assert [*tmp_path.iterdir()] == []
    assert tmp_path.stat().st_ino == inode


@pytest.mark.parametrize("foreign", ["thesis.pdf", "backup.tar.gz", "another-chart-1.0.tgz", "other.whl"])
def test_what_is_another_s_stays_with_all_beside_it(tmp_path: Path, foreign: str) -> None:
    for name in (*OF_A_RELEASE, foreign):
        (tmp_path / name).touch()
    with pytest.raises(ReleaseError, match=f"{foreign} is no part of a release"):
        clear(tmp_path, None)
    assert {each.name for each in tmp_path.iterdir()} == {*OF_A_RELEASE, foreign}
