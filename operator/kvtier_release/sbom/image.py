"""What is in an image: Debian's packages and Python's, read from the layers of its OCI archive."""

import tarfile
from collections.abc import Iterator
from email.parser import HeaderParser
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath
from typing import IO, Final

from packaging.utils import canonicalize_name

from kvtier_common.one_line import one_line
from kvtier_release.errors import ReleaseError
from kvtier_release.oci import blob, member, read_json
from kvtier_release.sbom.distribution import license_of
from kvtier_release.sbom.document import Package, document

_DPKG: Final = "var/lib/dpkg/status"
_RELEASES: Final = ("usr/lib/os-release", "etc/os-release")
_REMOVED: Final = ".wh."
_ALL_REMOVED: Final = ".wh..wh..opq"
"""Names of files that say what an upper layer takes away (image-spec v1.1, layer.md)."""
_MOST_SAID: Final = 200


class _Metadata(Distribution):
    """A Python package of which only the text of its METADATA is at hand."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        raise NotImplementedError


def image_sbom(name: str, archive: Path, created_s: int) -> str:
    """The document of an image.

    Raises:
        ReleaseError: Its layers cannot be read, or it is several images.
    """
    try:
        packages = packages_of(archive)
    except (tarfile.TarError, AttributeError, KeyError, TypeError, ValueError) as error:
        why = one_line(str(error), _MOST_SAID)
        raise ReleaseError(f"{archive}: its layers cannot be read: {why}") from error
    return document(f"kvtier/{name}", packages, created_s)


def packages_of(archive: Path) -> tuple[Package, ...]:
    """The packages in an image's upper view of its layers, in order."""
    files = _files(archive)
    vendor = next((_distribution(files[each]) for each in _RELEASES if each in files), "debian")
    found = {*_of_debian(files.get(_DPKG, b""), vendor)}
    for path, content in files.items():
        if path.endswith(".dist-info/METADATA"):
            found.add(_of_python(content))
    return tuple(sorted(found, key=lambda each: (each.kind, each.name, each.version)))


def _files(archive: Path) -> dict[str, bytes]:
    """What says which packages there are, by path, as the uppermost layer leaves it."""
    found: dict[str, bytes] = {}
    with tarfile.open(archive) as opened:
        [image] = read_json(opened, "index.json")["manifests"]
        manifest = read_json(opened, blob(image["digest"]))
        if "manifests" in manifest:
            raise ReleaseError(
                f"{archive} has images of several platforms, or what attests one: build one, with docker "
                "--provenance=false"
            )
        for layer in manifest["layers"]:
            _apply(member(opened, blob(layer["digest"])), found)
    return found


def _apply(layer: IO[bytes], found: dict[str, bytes]) -> None:
    with tarfile.open(fileobj=layer, mode="r|*") as opened:
        for entry in opened:
            path = PurePosixPath(entry.name.removeprefix("./").removeprefix("/"))
            if path.name == _ALL_REMOVED:
                _remove(f"{path.parent}/", found)
            elif path.name.startswith(_REMOVED):
                gone = str(path.with_name(path.name.removeprefix(_REMOVED)))
                found.pop(gone, None)
                _remove(f"{gone}/", found)
            elif entry.isfile() and _says_packages(path) and (content := opened.extractfile(entry)):
                found[str(path)] = content.read()


def _remove(folder: str, found: dict[str, bytes]) -> None:
    for path in [each for each in found if each.startswith(folder)]:
        del found[path]


def _says_packages(path: PurePosixPath) -> bool:
    python = path.name == "METADATA" and path.parent.suffix == ".dist-info"
    return python or str(path) == _DPKG or str(path) in _RELEASES


def _of_debian(status: bytes, vendor: str) -> Iterator[Package]:
    for paragraph in status.decode().split("\n\n"):
        about = HeaderParser().parsestr(paragraph)
        if about.get("Status", "").endswith(" installed"):
            yield Package("deb", vendor, about["Package"], about["Version"])


def _of_python(metadata: bytes) -> Package:
    about = _Metadata(metadata.decode())
    return Package("pypi", "", canonicalize_name(about.metadata["Name"]), about.version, license_of(about))


def _distribution(release: bytes) -> str:
    """Of os-release(5), ID."""
    named = dict(line.split("=", 1) for line in release.decode().splitlines() if "=" in line)
    return named.get("ID", "debian").strip('"')
