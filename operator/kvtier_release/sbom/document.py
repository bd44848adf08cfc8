"""Packages as a CycloneDX document with the same bytes each time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from kvtier_common.version import KVTIER_VERSION

_LONGEST_LICENSE: Final = 100
"""Some packages have their licence's whole text where its name belongs."""


@dataclass(frozen=True, slots=True)
class Package:
    """One package.

    Attributes:
        kind: Of package URLs: `pypi`, `deb`.
        vendor: Whose, such as the Linux distribution; empty for none.
        name: Its name.
        version: Its version.
        license: An SPDX expression or a name; empty where it says none.
        optional: Whether the distribution works without it.
    """

    kind: str
    vendor: str
    name: str
    version: str
    license: str = ""
    optional: bool = False

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
    """The document.

    Args:
        name: What it is of: an image, or kvtier itself.
        packages: All packages in it.
        created_s: Its time, in seconds since 1970.
        needs: What each package needs, as far as that is known.
    """
    root = Component(
        name=name, version=KVTIER_VERSION, type=ComponentType.APPLICATION, bom_ref=f"{name}@{KVTIER_VERSION}"
    )
    components = {each: _component(each) for each in packages}
    bom = Bom(
        components=components.values(),
        serial_number=uuid5(NAMESPACE_URL, f"https://kvtier.dev/sbom/{name}/{KVTIER_VERSION}/{created_s}"),
        metadata=BomMetaData(component=root, timestamp=datetime.fromtimestamp(created_s, UTC)),
    )
    bom.register_dependency(root, components.values())
    for package, needed in (needs or {}).items():
        bom.register_dependency(components[package], [components[each] for each in needed])
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
