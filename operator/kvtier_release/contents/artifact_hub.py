"""Whose chart it is, for Artifact Hub (artifacthub.io/docs/topics/repositories)."""

from typing import Any, Final

import yaml

from kvtier_release.oci import Content, artifact

ARTIFACT_HUB_FILE: Final = "artifacthub-repo.yml"
ARTIFACT_HUB_TAG: Final = "artifacthub.io"
"""Where beside the chart Artifact Hub looks for it."""
_CONFIG: Final = "application/vnd.cncf.artifacthub.config.v1+yaml"
_LAYER: Final = "application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml"


def artifact_hub_text(repository_id: str, owner: str) -> str:
    """The whole file.

    Args:
        repository_id: What Artifact Hub calls the repository; it says so once that has been added there.
        owner: Mail address of who may claim it; empty for nobody.
    """
    known: dict[str, Any] = {"repositoryID": repository_id} if repository_id else {}
    if owner:
        known["owners"] = [{"name": "kvtier", "email": owner}]
    missing = "" if repository_id else "# repositoryID: Artifact Hub gives it\n"
    return missing + (yaml.safe_dump(known, sort_keys=False) if known else "")


def artifact_hub_archive(text: str, seconds: int) -> bytes:
    """The file as Artifact Hub wants it in a registry: an OCI archive."""
    layer = Content(_LAYER, text.encode(), {"org.opencontainers.image.title": ARTIFACT_HUB_FILE})
    return artifact(Content(_CONFIG, b"{}"), layer, ARTIFACT_HUB_TAG, seconds)
