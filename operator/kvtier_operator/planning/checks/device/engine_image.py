"""Whether the engine's image has the backend's connector, and a vLLM that kvtier knows."""

from typing import Final

from kvtier_operator.api.backend import Backend
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.pod import images
from kvtier_operator.planning.pod.image_source import repository_of
from kvtier_operator.planning.pod.vllm_minor import KNOWN_MINORS, vllm_minor
from kvtier_operator.planning.verdict import CheckResult

_VERDICTS: Final = Verdicts("engine-image", "spec.engine.image")
_REGISTRIES: Final = ("docker.io/", "index.docker.io/", "registry-1.docker.io/")
_STOCK: Final = ("vllm/vllm-openai", "lmcache/vllm-openai")
"""How the names of published images begin, of every device; none has kvtier's connector."""
_BUILD: Final = (
    "leave it out for kvtier's own, or build one (connector/Containerfile with "
    "--build-arg BASE_IMAGE={image}, docs/development/images.md) and name that"
)


def engine_image(given: CheckInput) -> CheckResult:
    """Without kvtier's connector vLLM ends at start; the connector refuses minors that it does not know."""
    named, backend = given.spec.engine.image, given.spec.backend
    image = named or given.observed.images.engine(
        given.backend.image or images.vllm(given.spec.engine.device)
    )
    if given.observed.machine is not None:
        return _VERDICTS.passed("a local run takes this machine's vLLM", reason="NotLooked")
    name = _without_registry(repository_of(image))
    build = _BUILD.format(image=image)
    if backend is Backend.KVTIER and name.startswith(_STOCK):
        return _VERDICTS.reject(
            "ConnectorNotInImage", f"{image} is published without kvtier's connector, so vLLM ends: {build}"
        )
    minor = vllm_minor(named)
    if minor is not None and minor not in KNOWN_MINORS:
        return _of_another_minor(given, minor)
    if backend is Backend.KVTIER and any(f"/{stock}" in name for stock in _STOCK):
        return _VERDICTS.warn(
            "ConnectorMayNotBeInImage",
            f"{image} has the name of an image without kvtier's connector, where vLLM would end; if it is a "
            f"copy, {build}",
            by_itself="starts engines with it",
        )
    return _VERDICTS.passed(f"backend {backend} is in {image}, as far as its name tells")


def _of_another_minor(given: CheckInput, minor: int) -> CheckResult:
    known = " and ".join(f"0.{each}" for each in KNOWN_MINORS)
    then = (
        "kvtier's connector refuses others and vLLM ends"
        if given.spec.backend is Backend.KVTIER
        else "figures and arguments may differ"
    )
    return _VERDICTS.warn(
        "VersionNotTested",
        f"the tag says vLLM 0.{minor}, and kvtier is made for {known}: {then}; name an image of one of these",
        by_itself="plans as for the nearest of them",
    )


def _without_registry(repository: str) -> str:
    for registry in _REGISTRIES:
        repository = repository.removeprefix(registry)
    return repository
