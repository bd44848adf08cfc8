"""`make release`: the whole folder, twice the same."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.release.command import Release

from kvtier_common.version import KVTIER_VERSION

FILES = {
    f"kvtier-{KVTIER_VERSION}-py3-none-any.whl",
    f"kvtier-{KVTIER_VERSION}.tar.gz",
    f"tiered-prefix-cache-{KVTIER_VERSION}.tgz",
    "install.yaml",
    "release.json",
    "artifacthub-repo.yml",
    "SHA256SUMS",
    "bundle/metadata/annotations.yaml",
    "bundle/manifests/kvtier.clusterserviceversion.yaml",
    *(f"oci/{name}.tar" for name in ("operator", "picker", "connector")),
    *(f"oci/{name}.tar" for name in ("bundle", "chart", "artifact-hub")),
    *(f"sbom/{name}.cdx.json" for name in ("kvtier", "operator", "picker", "connector")),
}


def made(release: Release, dist: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return release("make", "--registry", "registry.example/team", "--dist", dist, *arguments)


def hashes(dist: Path) -> dict[str, str]:
    return {
        path.relative_to(dist).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in dist.rglob("*")
        if path.is_file()
    }


@pytest.fixture(autouse=True)
def a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout need not be a clone."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")


def test_two_releases_are_the_same(
    release: Release, archives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for dist in ("one", "two"):
        done = made(release, Path(dist), "--archives", archives)
        assert not done.returncode, done.stderr
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")
    assert hashes(tmp_path / "one").keys() >= FILES
    checked = subprocess.run(
        ["sha256sum", "--check", "--quiet", "SHA256SUMS"],  # noqa: S607 - the machine's own
        cwd=tmp_path / "one",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout) == (0, "")


def test_an_earlier_release_stays_where_there_is_no_new_one(
    release: Release, archives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dist = tmp_path / "dist"
    assert not made(release, dist, "--archives", archives).returncode
    before = hashes(dist)
    (tmp_path / "operator.tar").touch()
    assert made(release, dist, "--archives", tmp_path, "--image", "picker").returncode == 1
    assert made(release, dist, "--archives", tmp_path, "--image", "operator").returncode == 1
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    assert made(release, dist, "--archives", archives).returncode == 1
    assert hashes(dist) == before


def test_an_image_that_is_not_there_is_named(release: Release, tmp_path: Path) -> None:
    done = made(release, tmp_path / "dist", "--archives", tmp_path, "--image", "connector")
    [line] = done.stderr.splitlines()
    assert done.returncode == 1
    assert line == (
        f"release: {tmp_path} has no connector.tar: put the OCI archive of connector/Containerfile there, "
        "or name the images that are, each with --image"
    )


def test_a_folder_with_something_else_stays_as_it_is(
    release: Release, archives: Path, tmp_path: Path
) -> None:
    (tmp_path / "thesis.pdf").touch()
    done = made(release, tmp_path, "--archives", archives)
    assert (done.returncode, done.stderr) == (
        1,
        f"release: {tmp_path}/thesis.pdf is no part of a release: give another --dist, or remove it\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.pdf"]


def test_archives_in_the_folder_that_is_made_anew_stay(
    release: Release, archives: Path, tmp_path: Path
) -> None:
    shutil.copytree(archives, tmp_path / "dist" / "oci")
    done = made(release, tmp_path / "dist", "--archives", tmp_path / "dist" / "oci")
    assert done.returncode == 1
    assert "which is made anew: put the archives elsewhere" in done.stderr
    assert (tmp_path / "dist" / "oci" / "operator.tar").is_file()


def test_a_release_before_that_is_none_is_refused(release: Release, tmp_path: Path) -> None:
    (tmp_path / "release.json").write_text("latest")
    done = made(release, tmp_path / "dist", "--earlier", tmp_path / "release.json")
    [line] = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.startswith(
        f"release: {tmp_path}/release.json is no release.json: give that of the release before"
    )


def test_a_folder_that_cannot_be_made_is_one_line(release: Release, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = made(release, tmp_path / "file" / "dist")
    [line] = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.startswith("release: [Errno 20] Not a directory")


def test_what_is_no_registry_is_refused(release: Release, tmp_path: Path) -> None:
    done = release("make", "--registry", "https://registry.example", "--dist", tmp_path / "dist")
    assert done.returncode == 2
    assert "'https://registry.example' is not a registry: write HOST[:PORT][/PATH]" in done.stderr
