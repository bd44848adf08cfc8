"""Which version a release is, its images and how each is built, and where a cluster gets them."""

import json
import platform
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from packaging.version import Version

from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.planning.images import (
    CONNECTOR_VERSION,
    DOCTOR_VERSION,
    ImageName,
    picker_image_name,
)
from kvtier_release.commands import ReleaseError, program, run
from kvtier_release.oci import copy_tar, image_digest

_BOTH: Final = ("linux/amd64", "linux/arm64")
BUILDER: Final = "linux/arm64" if platform.machine() == "aarch64" else "linux/amd64"
"""For Containerfiles: not every buildah tells them."""


@dataclass(frozen=True, slots=True)
class ReleasedImage:
    """One image."""

    name: str
    containerfile: str
    version: str = KVTIER_VERSION
    platforms: tuple[str, ...] = ()  # as `buildah bud --platform` takes them; none: that of the builder

    @property
    def repository(self) -> str:
        """Its path below the registry."""
        return f"kvtier/{self.name}"


IMAGES: Final = {
    image.name: image
    for image in (
        ReleasedImage("operator", "operator/Containerfile"),
        ReleasedImage("picker", "scorer/Containerfile"),
        ReleasedImage("connector", "connector/Containerfile", CONNECTOR_VERSION, _BOTH),
    )
}
BUILT: Final = tuple(name for name, image in IMAGES.items() if image.version == KVTIER_VERSION)
"""Those that this release builds: engines go on with an earlier one's connector where it has not changed."""


def archive_of(name: str, dist: Path) -> Path:
    """Where a release has an OCI archive."""
    return dist / "oci" / f"{name}.tar"


def build_image(image: ReleasedImage, root: Path, archive: Path, seconds: int) -> None:
    """Builds an image with buildah, with one time for all of its files, and writes its OCI archive."""
    tag = f"{image.repository}:{KVTIER_VERSION}"
    named: tuple[str, ...] = ("--tag", tag)
    push: tuple[str, ...] = ("push", "--quiet")
    if image.platforms:
        with suppress(ReleaseError):  # buildah adds to a list that is there already
            run("buildah", "manifest", "rm", tag)
        named = (
            *("--platform", ",".join(image.platforms), "--build-arg", f"BUILDPLATFORM={BUILDER}"),
            *("--manifest", tag),
        )
        push = ("manifest", "push", "--quiet", "--all")
    run(
        "buildah",
        "bud",
        *("--layers", "--timestamp", str(seconds)),
        # the usual profile forbids setarch, by which the picker's kernels are the same each time
        *("--security-opt", "seccomp=unconfined"),
        *("--file", root / image.containerfile),
        *named,
        root,
    )
    pushed = archive.with_suffix(".pushed")
    try:
        run("buildah", *push, tag, f"oci-archive:{pushed}:{KVTIER_VERSION}")
        copy_tar(pushed, archive, seconds)
    finally:
        pushed.unlink(missing_ok=True)


def check_sources(names: Iterable[str], sources: Path | None) -> None:
    """Says now what `gather_images` would say later."""
    if sources is None:
        program("buildah")
        return
    for name in names:
        if not (there := sources / f"{name}.tar").is_file():
            raise ReleaseError(
                f"{sources} has no {there.name}: put the OCI archive of {IMAGES[name].containerfile} there, "
                "or name the images that are, each with --image"
            )
        image_digest(there)


def gather_images(
    names: Iterable[str], root: Path, dist: Path, seconds: int, sources: Path | None
) -> dict[str, str]:
    """Puts OCI archives into a release, built here or from the folder `given`; returns images' digests."""
    digests = {}
    for name in names:
        archive = archive_of(name, dist)
        archive.parent.mkdir(parents=True, exist_ok=True)
        archive.unlink(missing_ok=True)
        if sources is None:
            build_image(IMAGES[name], root, archive, seconds)
        else:
            shutil.copyfile(sources / archive.name, archive)
        digests[name] = image_digest(archive)
    return digests


FILE: Final = "release.json"
"""In a release's folder and in its chart, whose `_helpers.tpl` reads it."""
OPERATOR: Final = "operator"
_IMAGE_OF: Final = {
    OPERATOR: "operator",
    ImageName.DOCTOR: "operator",
    ImageName.CONNECTOR: "connector",
    picker_image_name(Flavor.BUILTIN): "picker",
}


@dataclass(frozen=True, slots=True)
class Release:
    """One release at one registry."""

    registry: str  # where its images and its chart are, `HOST[:PORT][/PATH]`
    created_s: int  # time of its files, in seconds since 1970
    # paths below the registry, by what an installation calls them and `operator`: by digest, or by tag if the
    # release was made without the image
    images: Mapping[str, str]
    version: str = KVTIER_VERSION  # kvtier's

    @classmethod
    def of_digests(
        cls, registry: str, created_s: int, digests: Mapping[str, str], earlier: Self | None = None
    ) -> Self:
        """A release of images; a ReleaseError where it needs an earlier release's image and has none."""
        return cls(registry, created_s, {str(image): _path(image, digests, earlier) for image in _IMAGE_OF})

    @classmethod
    def read(cls, dist: Path) -> Self:
        """The release in a folder."""
        try:
            return cls.parse((dist / FILE).read_bytes())
        except (OSError, ReleaseError) as error:
            raise ReleaseError(f"{dist} has no release: run make release ({error})") from error

    @classmethod
    def earlier(cls, file: Path) -> Self:
        """The release that a file describes."""
        try:
            return cls.parse(file.read_bytes())
        except ReleaseError as error:
            raise ReleaseError(
                f"{file} is no release.json: give that of the release before ({error})"
            ) from error

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """The release that `text` has written."""
        try:
            parsed = cls(**json.loads(text))
            parsed._check()
        except (ValueError, TypeError) as error:
            raise ReleaseError(f"no release: {error}") from error
        return parsed

    def text(self) -> str:
        """What `read` reads."""
        return json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"

    def _check(self) -> None:
        """Raises a ValueError where a field is none: files come from other machines."""
        if not (isinstance(self.registry, str) and isinstance(self.created_s, int)):
            raise TypeError("registry is to be text, and created_s a number")
        if not (isinstance(self.version, str) and isinstance(self.images, dict)):
            raise TypeError("version is to be text, and images a mapping")
        Version(self.version)
        if OPERATOR not in self.images or not all(isinstance(image, str) for image in self.images.values()):
            raise ValueError(f"images is to have paths, {OPERATOR}'s among them")

    def references(self) -> dict[str, str]:
        """Each image as a cluster pulls it."""
        return {name: f"{self.registry}/{path}" for name, path in self.images.items()}

    def installed_images(self) -> str:
        """What the operator is told of them: the value of KVTIER_IMAGES."""
        images = {name: image for name, image in self.references().items() if name != OPERATOR}
        return ",".join(f"{name}={image}" for name, image in sorted(images.items()))


def _path(name: str, digests: Mapping[str, str], earlier: Release | None) -> str:
    """Engines restart when an image in their pods changes: an earlier release's stays what it was there."""
    built, version = _IMAGE_OF[name], _version_of(name)
    repository = IMAGES[built].repository
    if version == KVTIER_VERSION:
        return f"{repository}@{digests[built]}" if built in digests else f"{repository}:{version}"
    if earlier and Version(earlier.version) < Version(version):
        raise ReleaseError(
            f"{name} is release {version}'s, and --earlier is of {earlier.version}: give the {FILE} of the "
            "release before this"
        )
    if earlier and name in earlier.images:
        return earlier.images[name]
    if digests:
        raise ReleaseError(f"{name} is release {version}'s: give --earlier, the {FILE} of the release before")
    return f"{repository}:{version}"


def _version_of(name: str) -> str:
    """The release whose image it is."""
    if name == ImageName.DOCTOR:
        return DOCTOR_VERSION
    return CONNECTOR_VERSION if name == ImageName.CONNECTOR else KVTIER_VERSION
