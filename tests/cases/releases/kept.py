"""What is kept of the last release: what it installed, resources, and the objects that it made of them.

`python -m tests.cases.releases.write` writes it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
INSTALL, RESOURCES, OBJECTS, CONTENTS = "install.yaml", "resources.yaml", "objects.yaml", "contents.json"
"""The files of a release: what `make release` leaves for kubectl; KVCacheTiers; their objects as they were
applied, but for their owners; and checksums of what is in images of engines' pods."""

Document = dict[str, Any]
Key = tuple[str, str]
"""Kind and name of an object."""


@dataclass(frozen=True, slots=True)
class KeptRelease:
    """One release.

    Attributes:
        folder: What is kept of it.
    """

    folder: Path

    @property
    def version(self) -> str:
        """Its version."""
        return self.folder.name

    @property
    def is_out(self) -> bool:
        """Whether the changelog says so: until then it is what the next release is going to be."""
        changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        return re.search(rf"^## \[?{re.escape(self.version)}\b", changelog, re.MULTILINE) is not None

    def text(self, name: str) -> str:
        """One of its files."""
        return (self.folder / name).read_text(encoding="utf-8")

    def installed(self) -> list[Document]:
        """The objects of its installation, the CRD among them."""
        return [*_documents(self.text(INSTALL))]

    def crd(self) -> Document:
        """Its CRD."""
        (found,) = [
            document for document in self.installed() if document["kind"] == "CustomResourceDefinition"
        ]
        return found

    def resources(self) -> list[Document]:
        """KVCacheTiers of all backends, with its fields."""
        return [*_documents(self.text(RESOURCES))]

    def objects(self) -> dict[Key, Document]:
        """All objects that it made of them."""
        return {key_of(document): document for document in _documents(self.text(OBJECTS))}


def _documents(text: str) -> Iterator[Document]:
    return yaml.load_all(text, Loader=yaml.CSafeLoader)


def last_release() -> KeptRelease:
    """The release that an upgrade to this checkout comes from."""
    (folder,) = [path for path in HERE.iterdir() if path.is_dir() and path.name[0].isdigit()]
    return KeptRelease(folder)


def key_of(document: Document) -> Key:
    """Kind and name."""
    return document["kind"], document["metadata"]["name"]
