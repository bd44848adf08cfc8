"""Whether the engine's image has the backend's connector, and a vLLM that kvtier knows."""

from typing import Final

from kvtier_operator.planning.backends import backends_that, traits_of
from kvtier_operator.planning.base.vllm_minor import KNOWN_MINORS, vllm_minor
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.images import PUBLISHED, repository_of
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("engine-image", "spec.engine.image")
_REGISTRIES: Final = ("docker.io/", "index.docker.io/", "registry-1.docker.io/")
_BUILD: Final = (
    "leave it out for kvtier's own, or build one (connector/Containerfile with "
    "--build-arg BASE_IMAGE={image}, docs/development/images.md) and name that"
)


def engine_image(given: CheckInput) -> CheckResult:
    """Without kvtier's connector vLLM ends at start; the connector refuses minors that it does not know."""
    named, backend = given.spec.engine.image, given.spec.backend
    image = named or given.observed.images.engine(given.traits.images[given.spec.engine.device])
    if given.observed.machine is not None:
        return _VERDICTS.passed("a local run takes this machine's vLLM", reason="NotLooked")
    name = _without_registry(repository_of(image))
    build = _BUILD.format(image=image)
    without, published = not given.traits.in_published_images, _published()
    if without and name.startswith(published):
        return _VERDICTS.reject(
            "ConnectorNotInImage", f"{image} is published without {given.traits.title}, so vLLM ends: {build}"
        )
    minor = vllm_minor(named)
    if minor is not None and minor not in KNOWN_MINORS:
        return _of_another_minor(given, minor)
    if without and any(f"/{each}" in name for each in published):
        return _VERDICTS.warn(
            "ConnectorMayNotBeInImage",
            f"{image} has the name of an image without {given.traits.title}, where vLLM would end; if it is "
            f"a copy, {build}",
            by_itself="starts engines with it",
        )
    return _VERDICTS.passed(f"backend {backend} is in {image}, as far as its name tells")


def _of_another_minor(given: CheckInput, minor: int) -> CheckResult:
    known = " and ".join(f"0.{each}" for each in KNOWN_MINORS)
    then = (
        f"{given.traits.title} refuses others and vLLM ends"
        if given.traits.refuses_other_minors
        else "figures and arguments may differ"
    )
    return _VERDICTS.warn(
        "VersionNotTested",
        f"the tag says vLLM 0.{minor}, and kvtier is made for {known}: {then}; name an image of one of these",
        by_itself="plans as for the nearest of them",
    )


def _published() -> tuple[str, ...]:
    """How the names of images begin that others publish, of every device."""
    theirs = backends_that(lambda traits: traits.in_published_images)
    names = {name for backend in theirs for name in traits_of(backend).images.values()}
    return tuple(sorted(repository_of(PUBLISHED[name]) for name in names))


def _without_registry(repository: str) -> str:
    for registry in _REGISTRIES:
        repository = repository.removeprefix(registry)
    return repository
