"""The chart as a package that says where the images of its release are."""

from pathlib import Path
from typing import Any, Final

import yaml

from kvtier_operator.generate.chart.about import CHART_NAME, chart_document
from kvtier_operator.generate.yaml_text import yaml_text
from kvtier_release.archive import tar_gz
from kvtier_release.oci import Content, artifact, as_json
from kvtier_release.release import FILE, Release

_OF_TESTS: Final = "ci"
_CONFIG: Final = "application/vnd.cncf.helm.config.v1+json"
_LAYER: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def chart_package(root: Path, release: Release) -> bytes:
    """What `helm package` makes, of the checkout's chart and the release, with the same bytes each time."""
    folder = root / "charts" / CHART_NAME
    files = {
        str(path.relative_to(folder.parent)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.relative_to(folder).parts[0] != _OF_TESTS
    }
    own = {"Chart.yaml": yaml_text(chart_about(release)), FILE: release.text()}
    named = {f"{CHART_NAME}/{name}": text.encode() for name, text in own.items()}
    return tar_gz(files | named, release.created_s)


def chart_archive(package: bytes, release: Release) -> bytes:
    """What `helm push` pushes of it, as an OCI archive."""
    config = Content(_CONFIG, as_json(chart_about(release)))
    return artifact(config, Content(_LAYER, package), release.version, release.created_s)


def chart_about(release: Release) -> dict[str, Any]:
    """Chart.yaml of a release: the checkout's, and what Artifact Hub shows of it."""
    images = [{"name": name, "image": image} for name, image in sorted(release.references().items())]
    annotations = {
        "artifacthub.io/license": "Apache-2.0",
        "artifacthub.io/operator": "true",
        "artifacthub.io/images": yaml.safe_dump(images, sort_keys=False),
    }
    return chart_document() | {"annotations": annotations}
