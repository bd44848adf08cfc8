import subprocess
from pathlib import Path

import pytest

from kvtier_common.version import KVTIER_VERSION
from kvtier_release import make
from kvtier_release.commands import ReleaseError
from kvtier_release.make import CHECKSUMS_FILE, checksums_text, clear


@pytest.mark.parametrize(
    "version", ["1.0", "0.2.0rc1", "0.2.0+local", "v0.2.0", "0.2.0 ", "0.02.0", "latest", ""]
)
def test_a_version_that_no_chart_takes_is_refused_first(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, "KVTIER_VERSION", version)
    with pytest.raises(ReleaseError, match=r"write MAJOR\.MINOR\.PATCH"):
        make.make_release(tmp_path, tmp_path / "dist", make.Wanted("registry.example", ["operator"]))
    assert not (tmp_path / "dist").exists()


def test_sha256sum_finds_every_file_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "sbom").mkdir()
    (tmp_path / "sbom" / "one").write_text("1")
    (tmp_path / "two").write_text("2")
    (tmp_path / CHECKSUMS_FILE).write_text(checksums_text(tmp_path))
    checked = subprocess.run(  # noqa: S603 - our own command
        ["sha256sum", "--check", "--strict", CHECKSUMS_FILE],  # noqa: S607 - the machine's own
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert checked.stdout == "sbom/one: OK\ntwo: OK\n"
    assert checksums_text(tmp_path) == (tmp_path / CHECKSUMS_FILE).read_text()


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
    assert {path.name for path in tmp_path.iterdir()} == {*OF_A_RELEASE, foreign}
