"""Where a cluster gets the images from that no resource names."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.api.formats import TAGGED
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.flavors import picker_image
from kvtier_operator.planning.pod.images import published
from kvtier_operator.planning.pod.images.published import IMAGE_NAMES, PUBLISHED, ImageName, picker_image_name

REGISTRY_FORM: Final = "write HOST[:PORT][/PATH], no https://, the path in lower case"
REGISTRY_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)*"
"""A host, a port and the start of a path."""
REPOSITORY_PATTERN: Final = (
    r"([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?/)?[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*"
)
"""An image without tag and digest; a port only where a path follows it."""
TAG_PATTERN: Final = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
REFERENCE_PATTERN: Final = f"{TAGGED}(@sha256:[0-9a-f]{{64}})?"
"""A repository with a tag or a digest, or both."""
SECRET_PATTERN: Final = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"  # noqa: S105 - names, no password


@dataclass(frozen=True, slots=True)
class ImageSource:
    """How an installation gets them. What a resource names itself is taken as it stands there.

    Attributes:
        registry: Takes the place of every published image's own registry, such as `registry.example/mirror`;
            empty for those.
        repository: kvtier's own image without its tag.
        references: Whole references by name, of `IMAGE_NAMES`, taken as they are.
        pull_secrets: Names of Secrets that pods pull with beside those of the resource.
    """

    registry: str = ""
    repository: str = published.KVTIER_REPOSITORY
    references: Mapping[str, str] = field(default_factory=dict)
    pull_secrets: tuple[str, ...] = ()

    def engine(self, name: ImageName) -> str:
        """An engine's image."""
        return self.references.get(name) or self._rehosted(PUBLISHED[name])

    def envoy(self) -> str:
        """The image of kvtier's own gateway."""
        return self.engine(ImageName.ENVOY)

    def operator(self) -> str:
        """The operator's own image, of this release: a chart's `image.tag` and `image.digest` are its own."""
        return self._own(f"{self.repository}:{KVTIER_VERSION}")

    def doctor(self) -> str:
        """The image with the doctor."""
        return self.references.get(ImageName.DOCTOR) or self._own(published.doctor(self.repository))

    def picker(self, flavor: Flavor, version: str, *, tested: bool) -> str:
        """A picker's image.

        Args:
            flavor: Which.
            version: Its version.
            tested: Whether that is the one kvtier was tested with, as an installation's own reference is.
        """
        reference = self.references.get(picker_image_name(flavor)) if tested else None
        return reference or self._rehosted(picker_image(flavor, version))

    def secrets(self, spec: Spec) -> tuple[str, ...]:
        """Names of the Secrets that a resource's pods pull with, its own first, the others in one order."""
        return tuple(
            dict.fromkeys([*(each.name for each in spec.image_pull_secrets), *sorted(self.pull_secrets)])
        )

    def _own(self, image: str) -> str:
        """A repository that names a registry is where this cluster's copy is."""
        return image if _has_registry(image) else self._rehosted(image)

    def _rehosted(self, image: str) -> str:
        if not self.registry:
            return image
        return f"{self.registry}/{image.partition('/')[2] if _has_registry(image) else image}"


def repository_of(image: str) -> str:
    """A reference without digest and tag: a colon before a slash is that of a port."""
    name = image.partition("@")[0]
    start, colon, tag = name.rpartition(":")
    return start if colon and "/" not in tag else name


def image_source(
    *,
    registry: str | None = None,
    repository: str | None = None,
    references: Iterable[str] = (),
    pull_secrets: Iterable[str] = (),
) -> ImageSource:
    """What options of a command say.

    Args:
        registry: As of ImageSource; nothing for each image's own.
        repository: As of ImageSource; nothing for the published one.
        references: Each `NAME=REFERENCE`.
        pull_secrets: Names of Secrets.

    Raises:
        InvalidInputError: One of them is not what it should be.
    """
    if registry and not re.fullmatch(REGISTRY_PATTERN, registry):
        raise _wrong("image-registry", f"{registry!r} is not a registry: {REGISTRY_FORM}")
    if repository and not re.fullmatch(REPOSITORY_PATTERN, repository):
        raise _wrong("repository", f"{repository!r} is not an image without its tag: write [HOST/]PATH")
    for secret in (pull_secrets := [*pull_secrets]):
        if not re.fullmatch(SECRET_PATTERN, secret):
            raise _wrong("image-pull-secret", f"{secret!r} is not the name of a Secret")
    return ImageSource(
        registry=registry or "",
        repository=repository or published.KVTIER_REPOSITORY,
        references=dict(_reference(each) for each in references),
        pull_secrets=tuple(pull_secrets),
    )


def _reference(text: str) -> tuple[str, str]:
    name, _, reference = text.partition("=")
    if name not in IMAGE_NAMES:
        raise _wrong("image", f"{name!r} is none of {', '.join(IMAGE_NAMES)}: write NAME=REFERENCE")
    if not re.fullmatch(REFERENCE_PATTERN, reference):
        form = f"write {name}=REPOSITORY:TAG or @sha256:..., no https://, the name in lower case"
        raise _wrong("image", f"{reference!r} is not a reference: {form}")
    return name, reference


def _wrong(option: str, message: str) -> InvalidInputError:
    return InvalidInputError(f"--{option}", Problem("", message))


def _has_registry(image: str) -> bool:
    """Whether a reference begins with a host (distribution/reference, splitDockerDomain)."""
    first, slash, _ = image.partition("/")
    return bool(slash) and ("." in first or ":" in first or first == "localhost")
