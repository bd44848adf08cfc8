"""The images of a release, and how each is built."""

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.planning.images import ENGINE_VERSION, PUBLISHED, ImageName
from kvtier_release.commands import ReleaseError, program, run
from kvtier_release.oci import copy_tar, image_digest


@dataclass(frozen=True, slots=True)
class ReleasedImage:
    """One image."""

    name: str
    containerfile: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    version: str = KVTIER_VERSION

    @property
    def repository(self) -> str:
        """Its path below the registry."""
        return f"kvtier/{self.name}"


IMAGES: Final = {
    each.name: each
    for each in (
        ReleasedImage("operator", "operator/Containerfile"),
        ReleasedImage("picker", "scorer/Containerfile"),
        ReleasedImage("engine", "connector/Containerfile", version=ENGINE_VERSION),
        ReleasedImage(
            "engine-cpu",
            "connector/Containerfile",
            {"BASE_IMAGE": f"docker.io/{PUBLISHED[ImageName.VLLM_CPU]}"},
            ENGINE_VERSION,
        ),
    )
}
BUILT: Final = tuple(name for name, each in IMAGES.items() if each.version == KVTIER_VERSION)
"""Those that this release builds: engines go on running an earlier one's where nothing in it has changed."""


def archive_of(name: str, dist: Path) -> Path:
    """Where a release has an OCI archive."""
    return dist / "oci" / f"{name}.tar"


def build_image(image: ReleasedImage, root: Path, archive: Path, seconds: int) -> None:
    """Builds an image with buildah, with one time for all of its files, and writes its OCI archive."""
    tag = f"{image.repository}:{KVTIER_VERSION}"
    arguments = [f"--build-arg={name}={value}" for name, value in image.arguments.items()]
    run(
        "buildah",
        "bud",
        *("--layers", "--timestamp", str(seconds), *arguments),
        # the usual profile forbids setarch, by which the picker's kernels are the same each time
        *("--security-opt", "seccomp=unconfined"),
        *("--file", root / image.containerfile, "--tag", tag, root),
    )
    pushed = archive.with_suffix(".pushed")
    try:
        run("buildah", "push", "--quiet", tag, f"oci-archive:{pushed}:{KVTIER_VERSION}")
        copy_tar(pushed, archive, seconds)
    finally:
        pushed.unlink(missing_ok=True)


def check_sources(names: Iterable[str], given: Path | None) -> None:
    """Says now what `gather_images` would say later."""
    if given is None:
        program("buildah")
        return
    for name in names:
        if not (there := given / f"{name}.tar").is_file():
            raise ReleaseError(
                f"{given} has no {there.name}: put the OCI archive of {IMAGES[name].containerfile} there, "
                "or name the images that are, each with --image"
            )
        image_digest(there)


def gather_images(
    names: Iterable[str], root: Path, dist: Path, seconds: int, given: Path | None
) -> dict[str, str]:
    """Puts OCI archives into a release, built here or from the folder `given`; returns images' digests."""
    digests = {}
    for name in names:
        archive = archive_of(name, dist)
        archive.parent.mkdir(parents=True, exist_ok=True)
        archive.unlink(missing_ok=True)
        if given is None:
            build_image(IMAGES[name], root, archive, seconds)
        else:
            shutil.copyfile(given / archive.name, archive)
        digests[name] = image_digest(archive)
    return digests
