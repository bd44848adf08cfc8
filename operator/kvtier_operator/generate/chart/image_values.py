"""The chart's values about images: where the operator's own, and those of engines and pickers, come from."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from kvtier_operator.api.spec.backend import Backend
from kvtier_operator.generate.chart.model import ChartModel
from kvtier_operator.install.settings import IMAGE_REPOSITORY
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.images import (
    DOCTOR_VERSION,
    REFERENCE_PATTERN,
    REGISTRY_PATTERN,
    REPOSITORY_PATTERN,
    SECRET_PATTERN,
    TAG_PATTERN,
    ImageName,
)

_SecretName = Annotated[str, Field(pattern=f"^{SECRET_PATTERN}$", max_length=253)]


class PullSecret(ChartModel):
    """A Secret with a registry's credentials."""

    name: _SecretName = Field(description="Its name.")


class Global(ChartModel):
    """Values that charts share; others than these are not read."""

    model_config = ConfigDict(extra="allow")

    image_registry: str = Field(
        "",
        description="Takes the place of the registry of every image, the operator's and those of engines "
        "and pickers: HOST[:PORT][/PATH]. ghcr.io/llm-d/x:1 becomes HOST/llm-d/x:1. Changing it restarts "
        "engines.",
        pattern=f"^({REGISTRY_PATTERN})?$",
    )
    image_pull_secrets: list[_SecretName | PullSecret] = Field(
        default_factory=list,
        description="Secrets to pull all images with: names, or [{name: ...}] as in a pod. Each must be in "
        "the operator's namespace and in that of every KVCacheTier. Changing them restarts engines.",
    )


class Image(ChartModel):
    """The operator's image."""

    repository: str = Field(
        IMAGE_REPOSITORY,
        description="Image without its tag; the engines' pods begin with it too. With a host of its own it "
        "is not given global.imageRegistry.",
        pattern=f"^{REPOSITORY_PATTERN}$",
    )
    tag: str = Field("", description="Tag; the chart's appVersion when empty.", pattern=f"^({TAG_PATTERN})?$")
    digest: str = Field(
        "",
        description="Digest such as sha256:...; wins over the tag. Of the operator's pod: for the engines' "
        "pods see images.doctor.",
        pattern="^(sha256:[0-9a-f]{64})?$",
    )
    pull_policy: str = Field(
        "IfNotPresent", description="Image pull policy.", pattern="^(Always|IfNotPresent|Never)$"
    )
    pull_secrets: list[dict[str, str]] = Field(
        default_factory=list,
        description="Secrets to pull it with, as in a pod: [{name: ...}]. For all: global.imagePullSecrets.",
    )


def _reference(what: str) -> Any:  # noqa: ANN401 - pydantic's own signature
    return Field("", description=what, pattern=f"^({REFERENCE_PATTERN})?$")


def _engines(image: ImageName) -> Any:  # noqa: ANN401 - as above
    """Of the backends, and where it is not for all, the devices that take an image."""
    taken = [
        (each, device) for each in Backend for device, name in traits_of(each).images.items() if name is image
    ]
    backends, devices = (dict.fromkeys(each) for each in zip(*taken, strict=True))
    what = f"backend{'s' if len(backends) > 1 else ''} {' and '.join(backends)}"
    return _reference(f"Engines of {what}{f' on {next(iter(devices))}' if len(devices) == 1 else ''}.")


class Images(ChartModel):
    """Whole references of images that KVCacheTiers do not name, such as registry.example/engine@sha256:..."""

    doctor: str = _reference(
        f"The first container of engines' pods: kvtier's image of release {DOCTOR_VERSION}. Changing it "
        "restarts engines."
    )
    engine: str = _engines(ImageName.ENGINE)
    engine_cpu: str = _engines(ImageName.ENGINE_CPU)
    vllm: str = _engines(ImageName.VLLM)
    vllm_cpu: str = _engines(ImageName.VLLM_CPU)
    lmcache: str = _engines(ImageName.LMCACHE)
    picker_llm_d: str = _reference("Pickers of flavor llm-d that name no version.")
    picker_gaie: str = _reference("Pickers of flavor gaie that name no version.")
    picker_builtin: str = _reference("Pickers of flavor builtin that name no version.")
    envoy: str = _reference("Envoy of KVCacheTiers with gateway provider standalone.")
