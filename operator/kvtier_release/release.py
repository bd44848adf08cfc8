"""Which version a release is, and where a cluster gets its images."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.planning.pod.images.published import DOCTOR_VERSION, ImageName, doctor, picker_image_name
from kvtier_release.contents.images import IMAGES
from kvtier_release.errors import ReleaseError

FILE: Final = "release.json"
"""In a release's folder and in its chart, whose `_helpers.tpl` reads it."""
OPERATOR: Final = "operator"
_IMAGE_OF: Final = {
    OPERATOR: "operator",
    ImageName.ENGINE: "engine",
    ImageName.ENGINE_CPU: "engine-cpu",
    picker_image_name(Flavor.BUILTIN): "picker",
}


@dataclass(frozen=True, slots=True)
class Release:
    """One release at one registry.

    Attributes:
        registry: Where its images and its chart are, `HOST[:PORT][/PATH]`.
        created_s: Time of its files, in seconds since 1970.
        images: Paths below the registry, by what an installation calls them and `operator`: by
            digest, or by tag if the release was made without the image.
        version: kvtier's.
    """

    registry: str
    created_s: int
    images: Mapping[str, str]
    version: str = KVTIER_VERSION

    @classmethod
    def of_digests(cls, registry: str, created_s: int, digests: Mapping[str, str], older_doctor: str) -> Self:
        """A release of images.

        Args:
            registry: As of the class.
            created_s: As of the class.
            digests: By names of IMAGES, those that were built.
            older_doctor: Digest of the image with the doctor where that is an earlier release's.

        Raises:
            ReleaseError: The doctor's digest is needed and not given.
        """
        return cls(
            registry,
            created_s,
            {
                **{str(each): _path(name, digests) for each, name in _IMAGE_OF.items()},
                str(ImageName.DOCTOR): _doctor(digests, older_doctor),
            },
        )

    @classmethod
    def read(cls, dist: Path) -> Self:
        """The release in a folder.

        Raises:
            ReleaseError: There is none.
        """
        try:
            return cls(**json.loads((dist / FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise ReleaseError(f"{dist} has no release: run make release ({error})") from error

    def text(self) -> str:
        """What `read` reads."""
        return json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"

    def references(self) -> dict[str, str]:
        """Each image as a cluster pulls it."""
        return {name: f"{self.registry}/{path}" for name, path in self.images.items()}

    def installed_images(self) -> str:
        """What the operator is told of them: the value of KVTIER_IMAGES."""
        given = {name: image for name, image in self.references().items() if name != OPERATOR}
        return ",".join(f"{name}={image}" for name, image in sorted(given.items()))


def _path(name: str, digests: Mapping[str, str]) -> str:
    repository = IMAGES[name].repository
    return f"{repository}@{digests[name]}" if name in digests else f"{repository}:{KVTIER_VERSION}"


def _doctor(digests: Mapping[str, str], older: str) -> str:
    """Engines restart when it changes, so an earlier release's has to stay what it was there."""
    if DOCTOR_VERSION == KVTIER_VERSION:
        return _path("operator", digests)
    if older:
        return f"{IMAGES['operator'].repository}@{older}"
    if "operator" in digests:
        raise ReleaseError(
            f"the doctor is release {DOCTOR_VERSION}'s: give --doctor-digest, which that release's {FILE} has"
        )
    return doctor()
