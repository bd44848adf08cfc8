"""Images by what runs in them, where the resource names none. The tags are the tested versions."""

from typing import Final

from kvtier_operator.api.engine import Device
from kvtier_operator.api.router import Flavor

KVTIER_VERSION: Final = "0.1.0"
"""Of kvtier's own images; the distribution's version (pyproject.toml), to which a unit test holds it."""

KVTIER_REPOSITORY: Final = "kvtier/operator"
"""kvtier itself: the operator, and the doctor in the engines' pods."""

_DOCTOR_VERSION: Final = "0.1.0"
"""The release whose doctor looks at the engines' pods. It rises only when the doctor changes: a new image in
the pod's template restarts every engine, which an upgrade of the operator alone must not."""

LMCACHE: Final = "lmcache/vllm-openai:v0.5.6"
"""vLLM with LMCache, of which the settings here are."""

_VLLM_VERSION: Final = "v0.33.0"


def vllm(device: Device) -> str:
    """The image of vLLM itself."""
    repository = "vllm/vllm-openai-cpu" if device is Device.CPU else "vllm/vllm-openai"
    return f"{repository}:{_VLLM_VERSION}"


def kvtier_engine(device: Device) -> str:
    """The image of vLLM with kvtier's connector."""
    repository = "kvtier/engine-cpu" if device is Device.CPU else "kvtier/engine"
    return f"{repository}:{KVTIER_VERSION}"


def doctor(repository: str | None = None) -> str:
    """The image with the doctor, from where this cluster gets it if that is another place."""
    return f"{repository or KVTIER_REPOSITORY}:{_DOCTOR_VERSION}"


def picker(flavor: Flavor, version: str) -> str:
    """The image of a flavour's picker; a version without a patch is that minor's first release."""
    number = version.removeprefix("v")
    full = number if number.count(".") > 1 else f"{number}.0"
    return {
        Flavor.LLM_D: f"ghcr.io/llm-d/llm-d-router-endpoint-picker:v{full}",
        Flavor.GAIE: f"registry.k8s.io/gateway-api-inference-extension/epp:v{full}",
        Flavor.BUILTIN: f"kvtier/picker:{full}",
    }[flavor]
