import subprocess
from pathlib import Path

from kvtier_release.make import CHECKSUMS_FILE, checksums_text


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
