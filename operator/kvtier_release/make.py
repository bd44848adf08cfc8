"""`make release`: all files of a release, from a checkout."""

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtier_common.version import KVTIER_VERSION
from kvtier_release.contents.artifact_hub import ARTIFACT_HUB_FILE, artifact_hub_archive, artifact_hub_text
from kvtier_release.contents.bundle import bundle_archive, bundle_files
from kvtier_release.contents.chart import chart_archive, chart_package
from kvtier_release.contents.checksums import CHECKSUMS_FILE, checksums_text
from kvtier_release.contents.images import archive_of, check_sources, gather_images
from kvtier_release.contents.install_file import INSTALL_FILE, install_text
from kvtier_release.contents.packages import build_packages
from kvtier_release.created import created_s
from kvtier_release.errors import ReleaseError
from kvtier_release.layout import BUNDLE, CHART, HUB, chart_package_of, clear, sbom_of
from kvtier_release.release import FILE, Release
from kvtier_release.sbom.distribution import distribution_sbom
from kvtier_release.sbom.image import image_sbom

_VERSION: Final = re.compile(r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a release is to be.

    Attributes:
        registry: Where its images and chart are going to be.
        images: Which images it has, of IMAGES.
        archives: Folder with images that were built elsewhere; nothing to build them here.
        earlier: The release before, for images that stay as they were there.
        repository_id: What Artifact Hub calls the chart's repository.
        owner: Mail address of whom Artifact Hub takes for its owner.
    """

    registry: str
    images: Iterable[str]
    archives: Path | None = None
    earlier: Release | None = None
    repository_id: str = ""
    owner: str = ""


def make_release(root: Path, dist: Path, wanted: Wanted) -> Release:
    """Makes the folder anew.

    Raises:
        ReleaseError: A part cannot be made.
    """
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
        dist / chart_package_of(release): package,
        archive_of(CHART, dist): chart_archive(package, release),
        archive_of(BUNDLE, dist): bundle_archive(root, release),
        archive_of(HUB, dist): artifact_hub_archive(hub, seconds),
        **{dist / BUNDLE / name: content for name, content in bundle_files(root, release).items()},
    }
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (dist / CHECKSUMS_FILE).write_text(checksums_text(dist), encoding="utf-8")
