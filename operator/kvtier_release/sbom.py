"""Software bills of materials, as CycloneDX: of the distribution, and of what is in an image."""

import tarfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.parser import HeaderParser
from importlib.metadata import Distribution, PackageMetadata, PackageNotFoundError
from pathlib import Path, PurePosixPath
from typing import IO, Final
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kvtier_common.one_line import one_line
from kvtier_common.version import KVTIER_VERSION
from kvtier_release.commands import ReleaseError
from kvtier_release.oci import blob, image_manifests, member

_LONGEST_LICENSE: Final = 100
"""Some packages have their licence's whole text where its name belongs."""
EXTRAS: Final = ("operator", "connector", "scorer")
"""`engine-cpu` brings vLLM, whose own packages are vLLM's to say."""
_LOCK: Final = "requirements-light.lock"
_DPKG: Final = "var/lib/dpkg/status"
_RELEASES: Final = ("usr/lib/os-release", "etc/os-release")
_REMOVED: Final = ".wh."
_ALL_REMOVED: Final = ".wh..wh..opq"
"""Names of files that say what an upper layer takes away (image-spec v1.1, layer.md)."""
_MOST_SAID: Final = 200


@dataclass(frozen=True, slots=True)
class Package:
    """One package."""

    kind: str  # of package URLs: `pypi`, `deb`
    vendor: str  # whose, such as the Linux distribution; empty for none
    name: str
    version: str
    license: str = ""  # an SPDX expression or a name; empty where it says none
    optional: bool = False  # whether the distribution works without it

    @property
    def url(self) -> PackageURL:
        """Its package URL."""
        return PackageURL(self.kind, self.vendor or None, self.name, self.version)


def document(
    name: str,
    packages: Iterable[Package],
    created_s: int,
    needs: Mapping[Package, Iterable[Package]] | None = None,
) -> str:
    """The document."""
    root = Component(
        name=name, version=KVTIER_VERSION, type=ComponentType.APPLICATION, bom_ref=f"{name}@{KVTIER_VERSION}"
    )
    components = {package: _component(package) for package in packages}
    bom = Bom(
        components=components.values(),
        serial_number=uuid5(NAMESPACE_URL, f"https://kvtier.dev/sbom/{name}/{KVTIER_VERSION}/{created_s}"),
        metadata=BomMetaData(component=root, timestamp=datetime.fromtimestamp(created_s, UTC)),
    )
    bom.register_dependency(root, components.values())
    for package, needed in (needs or {}).items():
        bom.register_dependency(components[package], [components[need] for need in needed])
    return str(JsonV1Dot6(bom).output_as_string(indent=2)) + "\n"


def _component(package: Package) -> Component:
    known = 0 < len(package.license) <= _LONGEST_LICENSE and "\n" not in package.license
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        purl=package.url,
        bom_ref=str(package.url),
        scope=ComponentScope.OPTIONAL if package.optional else ComponentScope.REQUIRED,
        licenses=[LicenseFactory().make_from_string(package.license)] if known else [],
    )


def distribution_sbom(root: Path, created_s: int) -> str:
    """The document, of the locked versions as they are installed beside this program."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = _locked_versions((root / _LOCK).read_text(encoding="utf-8"))
    required = _needs(project["dependencies"])
    extras = project["optional-dependencies"]
    needs = _needs(requirement for extra in EXTRAS for requirement in extras[extra]) | required
    packages = {name: _package(name, locked, optional=name not in required) for name in needs}
    graph = {packages[name]: [packages[need] for need in needed] for name, needed in needs.items()}
    return document("kvtier", packages.values(), created_s, graph)


def _locked_versions(text: str) -> dict[str, str]:
    """The versions of a lock file that are for this machine and its Python."""
    lines = [line.removesuffix("\\") for line in text.splitlines() if line and line[0] not in " #"]
    here = [requirement for requirement in map(Requirement, lines) if _applies(requirement)]
    return {
        canonicalize_name(requirement.name): str(requirement.specifier).removeprefix("==")
        for requirement in here
    }


def _needs(requirements: Iterable[str]) -> dict[str, set[str]]:
    """What is needed here, by name, with the names of what each needs in turn."""
    needs: dict[str, set[str]] = {}
    waiting = [entry for entry in map(Requirement, requirements) if _applies(entry)]
    for requirement in waiting:  # it grows meanwhile
        name = canonicalize_name(requirement.name)
        of_this = map(Requirement, _installed_package(name).requires or ())
        needed = [entry for entry in of_this if _applies(entry, requirement.extras)]
        needs.setdefault(name, set()).update(canonicalize_name(requirement.name) for requirement in needed)
        waiting += [need for need in needed if need not in waiting]
    return needs


def _applies(requirement: Requirement, extras: Iterable[str] = ()) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def _package(name: str, locked: dict[str, str], *, optional: bool) -> Package:
    installed = _installed_package(name)
    if installed.version != locked.get(name):
        raise ReleaseError(
            f"{name} is {installed.version} here and {locked.get(name, 'missing')} in {_LOCK}: "
            "run make setup-light"
        )
    return Package("pypi", "", name, installed.version, license_of(installed.metadata), optional)


def _installed_package(name: str) -> Distribution:
    try:
        return Distribution.from_name(name)
    except PackageNotFoundError as error:
        raise ReleaseError(f"{name} is not installed here: run make setup-light") from error


def license_of(about: Message | PackageMetadata) -> str:
    """What a package says its licence is, the newer of its ways to say so first; empty for none."""
    if "License-Expression" in about:
        return about["License-Expression"]
    named = [line for line in about.get_all("Classifier") or () if line.startswith("License :: ")]
    if named:
        return str(named[0]).rpartition(" :: ")[2]
    return about["License"] if "License" in about else ""  # noqa: SIM401 - no get before Python 3.12


def image_sbom(name: str, archive: Path, created_s: int) -> str:
    """The document of an image."""
    try:
        packages = packages_of(archive)
    except (tarfile.TarError, AttributeError, KeyError, TypeError, ValueError) as error:
        why = one_line(str(error), _MOST_SAID)
        raise ReleaseError(f"{archive}: its layers cannot be read: {why}") from error
    return document(f"kvtier/{name}", packages, created_s)


def packages_of(archive: Path) -> tuple[Package, ...]:
    """The packages in an image's upper view of its layers, in order; those of all its platforms."""
    with tarfile.open(archive) as opened:
        packages = {
            package
            for manifest in image_manifests(opened)
            for package in _packages(_files(opened, manifest["layers"]))
        }
    return tuple(sorted(packages, key=lambda package: (package.kind, package.name, package.version)))


def _packages(files: Mapping[str, bytes]) -> Iterator[Package]:
    vendor = next((_distribution(files[release]) for release in _RELEASES if release in files), "debian")
    yield from _of_debian(files.get(_DPKG, b""), vendor)
    for path, content in files.items():
        if path.endswith(".dist-info/METADATA"):
            yield _of_python(content)


def _files(opened: tarfile.TarFile, layers: Iterable[Mapping[str, str]]) -> dict[str, bytes]:
    """What says which packages there are, by path, as the uppermost layer leaves it."""
    files: dict[str, bytes] = {}
    for layer in layers:
        _apply(member(opened, blob(layer["digest"])), files)
    return files


def _apply(layer: IO[bytes], files: dict[str, bytes]) -> None:
    with tarfile.open(fileobj=layer, mode="r|*") as opened:
        for entry in opened:
            path = PurePosixPath(entry.name.removeprefix("./").removeprefix("/"))
            if path.name == _ALL_REMOVED:
                _remove(f"{path.parent}/", files)
            elif path.name.startswith(_REMOVED):
                gone = str(path.with_name(path.name.removeprefix(_REMOVED)))
                files.pop(gone, None)
                _remove(f"{gone}/", files)
            elif entry.isfile() and _says_packages(path) and (content := opened.extractfile(entry)):
                files[str(path)] = content.read()


def _remove(folder: str, files: dict[str, bytes]) -> None:
    for path in [file for file in files if file.startswith(folder)]:
        del files[path]


def _says_packages(path: PurePosixPath) -> bool:
    python = path.name == "METADATA" and path.parent.suffix == ".dist-info"
    return python or str(path) == _DPKG or str(path) in _RELEASES


def _of_debian(status: bytes, vendor: str) -> Iterator[Package]:
    for paragraph in status.decode().split("\n\n"):
        about = HeaderParser().parsestr(paragraph)
        if about.get("Status", "").endswith(" installed"):
            yield Package("deb", vendor, about["Package"], about["Version"])


def _of_python(metadata: bytes) -> Package:
    about = HeaderParser().parsestr(metadata.decode())
    return Package("pypi", "", canonicalize_name(about["Name"]), about["Version"], license_of(about))


def _distribution(release: bytes) -> str:
    """Of os-release(5), ID."""
    named = dict(line.split("=", 1) for line in release.decode().splitlines() if "=" in line)
    return named.get("ID", "debian").strip('"')
