"""Where in a release's folder things are, and where they go in a registry."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtier_operator.generate.chart.about import CHART_NAME
from kvtier_release.contents.artifact_hub import ARTIFACT_HUB_FILE, ARTIFACT_HUB_TAG
from kvtier_release.contents.checksums import CHECKSUMS_FILE
from kvtier_release.contents.images import IMAGES, archive_of
from kvtier_release.contents.install_file import INSTALL_FILE
from kvtier_release.errors import ReleaseError
from kvtier_release.release import FILE, Release

BUNDLE, CHART, HUB = "bundle", "chart", "artifact-hub"
"""Names of archives beside those of images."""
CHART_REPOSITORY: Final = f"kvtier/charts/{CHART_NAME}"


_OWN: Final = (
    *("kvtier-*.whl", "kvtier-*.tar.gz", f"{CHART_NAME}-*.tgz", "oci", "sbom", BUNDLE),
    *(FILE, INSTALL_FILE, ARTIFACT_HUB_FILE, CHECKSUMS_FILE),
)
"""What a release's folder has."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """What is pushed of a release.

    Attributes:
        archive: Its OCI archive.
        repository: Where, below the registry.
        tag: Under which tag.
        is_final: Whether another one under this tag is a mistake.
    """

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
    """Removes an earlier release, as far as that is what a folder has.

    Args:
        dist: The folder; it is made where there is none.
        kept: A folder that is needed afterwards.

    Raises:
        ReleaseError: Something else is in it, or `kept` is.
    """
    dist.mkdir(parents=True, exist_ok=True)
    if kept and kept.resolve().is_relative_to(dist.resolve()):
        raise ReleaseError(f"{kept} is in {dist}, which is made anew: put the archives elsewhere")
    if foreign := [each for each in dist.iterdir() if not any(each.match(own) for own in _OWN)]:
        raise ReleaseError(f"{foreign[0]} is no part of a release: give another --dist, or remove it")
    for each in dist.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
        else:
            each.unlink()


def chart_package_of(release: Release) -> str:
    """Name of the chart's package."""
    return f"{CHART_NAME}-{release.version}.tgz"


def sbom_of(name: str, dist: Path) -> Path:
    """Where the SBOM of an image is; of `kvtier`, that of the distribution."""
    return dist / "sbom" / f"{name}.cdx.json"
