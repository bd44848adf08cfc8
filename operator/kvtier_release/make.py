"""`make release`: all files of a release, from a checkout, and where in its folder they are."""

import hashlib
import re
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.generate.chart.files import CHART_NAME
from kvtier_release.commands import SOURCE_DATE_EPOCH, ReleaseError, created_s, run
from kvtier_release.installers import (
    ARTIFACT_HUB_FILE,
    ARTIFACT_HUB_TAG,
    INSTALL_FILE,
    artifact_hub_archive,
    artifact_hub_text,
    bundle_archive,
    bundle_files,
    chart_archive,
    chart_package,
    install_text,
)
from kvtier_release.release import FILE, IMAGES, Release, archive_of, check_sources, gather_images
from kvtier_release.sbom import distribution_sbom, image_sbom

CHECKSUMS_FILE: Final = "SHA256SUMS"
BUNDLE, CHART, HUB = "bundle", "chart", "artifact-hub"
"""Names of archives beside those of images."""
CHART_REPOSITORY: Final = f"kvtier/charts/{CHART_NAME}"
_OWN: Final = (
    *("kvtier-*.whl", "kvtier-*.tar.gz", f"{CHART_NAME}-*.tgz", "oci", "sbom", BUNDLE),
    *(FILE, INSTALL_FILE, ARTIFACT_HUB_FILE, CHECKSUMS_FILE),
)
"""What a release's folder has."""
_VERSION: Final = re.compile(r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}")


def build_packages(root: Path, dist: Path, seconds: int) -> None:
    """Builds both into a folder; the same sources and time make the same bytes."""
    arguments = ("-m", "hatchling", "build", "--target", "sdist", "--target", "wheel", "--directory", dist)
    run(sys.executable, *arguments, cwd=root, env={SOURCE_DATE_EPOCH: str(seconds)})


def checksums_text(dist: Path) -> str:
    """A line for each file of a release."""
    files = sorted(
        path.relative_to(dist).as_posix()
        for path in dist.rglob("*")
        if path.is_file() and path.name != CHECKSUMS_FILE
    )
    return "".join(f"{_sha256(dist / file)}  {file}\n" for file in files)


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Pushed:
    """What is pushed of a release."""

    archive: Path
    repository: str
    tag: str
    is_final: bool = True


def pushed_archives(dist: Path, release: Release) -> tuple[Pushed, ...]:
    """All of it, what is named by other parts before these."""
    images = [
        Pushed(archive, image.repository, release.version)
        for name, image in IMAGES.items()
        if (archive := archive_of(name, dist)).is_file()
    ]
    return (
        *images,
        Pushed(archive_of(BUNDLE, dist), f"kvtier/{BUNDLE}", release.version),
        Pushed(archive_of(CHART, dist), CHART_REPOSITORY, release.version),
        Pushed(archive_of(HUB, dist), CHART_REPOSITORY, ARTIFACT_HUB_TAG, is_final=False),
    )


def clear(dist: Path, kept: Path | None) -> None:
    """Removes an earlier release, as far as that is what a folder has."""
    dist.mkdir(parents=True, exist_ok=True)
    if kept and kept.resolve().is_relative_to(dist.resolve()):
        raise ReleaseError(f"{kept} is in {dist}, which is made anew: put the archives elsewhere")
    if foreign := [path for path in dist.iterdir() if not any(path.match(own) for own in _OWN)]:
        raise ReleaseError(f"{foreign[0]} is no part of a release: give another --dist, or remove it")
    for path in dist.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def sbom_of(name: str, dist: Path) -> Path:
    """Where the SBOM of an image is; of `kvtier`, that of the distribution."""
    return dist / "sbom" / f"{name}.cdx.json"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a release is to be."""

    registry: str  # where its images and chart are going to be
    images: Iterable[str]  # which images it has, of IMAGES
    archives: Path | None = None  # folder with images that were built elsewhere; nothing to build them here
    earlier: Release | None = None  # the release before, for images that stay as they were there
    repository_id: str = ""  # what Artifact Hub calls the chart's repository
    owner: str = ""  # mail address of whom Artifact Hub takes for its owner


def make_release(root: Path, dist: Path, wanted: Wanted) -> Release:
    """Makes the folder anew."""
    if not _VERSION.fullmatch(KVTIER_VERSION):
        raise ReleaseError(
            f"version {KVTIER_VERSION!r} of kvtier_common/version.py: write MAJOR.MINOR.PATCH, which wheel, "
            "chart and tags take alike"
        )
    # before hours of building, and before an earlier release is removed: what can be known to be missing
    Release.of_digests(wanted.registry, 0, dict.fromkeys(wanted.images, ""), wanted.earlier)
    seconds = created_s(root)
    check_sources(wanted.images, wanted.archives)
    clear(dist, wanted.archives)
    (dist / "sbom").mkdir()
    build_packages(root, dist, seconds)
    digests = gather_images(wanted.images, root, dist, seconds, wanted.archives)
    sboms = {name: image_sbom(name, archive_of(name, dist), seconds) for name in digests}
    for name, text in {"kvtier": distribution_sbom(root, seconds), **sboms}.items():
        sbom_of(name, dist).write_text(text, encoding="utf-8")
    hub = artifact_hub_text(wanted.repository_id, wanted.owner)
    (dist / ARTIFACT_HUB_FILE).write_text(hub, encoding="utf-8")
    release = Release.of_digests(wanted.registry, seconds, digests, wanted.earlier)
    write_for_registry(root, dist, release)
    return release


def write_for_registry(root: Path, dist: Path, release: Release) -> None:
    """Writes the files that say where the images are, and the checksums of all."""
    shutil.rmtree(dist / BUNDLE, ignore_errors=True)
    package, seconds = chart_package(root, release), release.created_s
    hub = (dist / ARTIFACT_HUB_FILE).read_text(encoding="utf-8")
    files = {
        dist / FILE: release.text().encode(),
        dist / INSTALL_FILE: install_text(release).encode(),
        dist / f"{CHART_NAME}-{release.version}.tgz": package,
        archive_of(CHART, dist): chart_archive(package, release),
        archive_of(BUNDLE, dist): bundle_archive(root, release),
        archive_of(HUB, dist): artifact_hub_archive(hub, seconds),
        **{dist / BUNDLE / name: content for name, content in bundle_files(root, release).items()},
    }
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (dist / CHECKSUMS_FILE).write_text(checksums_text(dist), encoding="utf-8")
