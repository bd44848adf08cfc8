"""What this checkout makes of the resources of a release, installed from where the release was."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.cases.releases.kept import ROOT, Document, Key, key_of

from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.api.parse import parse_resource
from kvtier_operator.planning.images import CONNECTOR_VERSION, DOCTOR_VERSION, image_source
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.pod_template.template import pod_templates
from kvtier_operator.reconcile.facts.cached_plan import desired_objects
from kvtier_release.installers import install_text
from kvtier_release.release import Release

_REGISTRY: Final = "registry.example/team"
NAMESPACE: Final = "upgraded"
"""Of all resources."""
_IN_IMAGES: Final = {
    "connector": ("connector/kvtier_connector", "connector/kvtier_common", "connector/Containerfile"),
    "doctor": ("operator/kvtier_operator/doctor", "connector/kvtier_common/kernel", "operator/Containerfile"),
}
"""What decides how the containers of an engine's pod behave."""
LEFT_OUT: Final = frozenset({"bench", "benchmarks", "kubernetes", "version.py", "project.py", "__pycache__"})
"""In it, and of no effect on an engine; the version for one changes with every release."""


def present_release() -> Release:
    """A release of this checkout whose images nobody built: it names them by their tags."""
    return Release.of_digests(_REGISTRY, 0, {})


def present_install() -> str:
    """Its install.yaml."""
    return install_text(present_release())


def present_plan(resource: Document) -> Plan:
    """The plan of a resource with its images."""
    references = present_release().installed_images().split(",")
    return make_plan(
        parse_resource(resource, resource["metadata"]["name"]),
        Observed(images=image_source(references=references)),
    )


def present_objects(resources: Iterable[Document]) -> dict[Key, Document]:
    """All objects of resources as they are applied, without the owners' uids."""
    return {key_of(each): each for resource in resources for each in _applied_documents(resource)}


def _applied_documents(resource: Document) -> Iterable[Document]:
    plan = present_plan(resource)
    built = build_objects(plan)
    templates = pod_templates(plan.resource.spec)
    for document in desired_objects(built, name=resource["metadata"]["name"], uid="", templates=templates):
        yield dict(document.body or {})


def contents() -> dict[str, str]:
    """A checksum for each image of engines' pods, over what decides how it behaves."""
    return {name: _checksum(files_in(name)) for name in _IN_IMAGES}


def files_in(image: str) -> list[Path]:
    """What decides how an image of engines' pods behaves."""
    parts = (ROOT / image for image in _IN_IMAGES[image])
    files = (file for part in parts for file in (part.rglob("*") if part.is_dir() else [part]))
    return sorted(file for file in files if file.is_file() and not LEFT_OUT & {*file.parts})


def older_images() -> frozenset[str]:
    """Those that this version has from an earlier release."""
    versions = {"connector": CONNECTOR_VERSION, "doctor": DOCTOR_VERSION}
    return frozenset(name for name, version in versions.items() if version != KVTIER_VERSION)


def _checksum(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def with_owners(document: Mapping[str, Any], uids: Mapping[str, str]) -> Document:
    """An object as it is applied for resources with these uids, by name."""
    (owner,) = document["metadata"]["ownerReferences"]
    metadata = document["metadata"] | {"ownerReferences": [owner | {"uid": uids[owner["name"]]}]}
    return {**document, "metadata": metadata}
