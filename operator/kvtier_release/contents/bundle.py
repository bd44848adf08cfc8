"""The bundle with which Operator Lifecycle Manager installs kvtier (format registry+v1)."""

import json
from pathlib import Path
from typing import Any, Final

import yaml

from kvtier_operator.api.resource import GROUP, KIND, VERSION
from kvtier_operator.api.schema.crd import CRD_NAME, crd
from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.generate.chart.about import OLDEST_KUBERNETES
from kvtier_operator.install.deployment import deployment, service
from kvtier_operator.install.rbac import EVERYTHING, view_role
from kvtier_operator.install.settings import Installation
from kvtier_operator.planning.flavors import picker_image
from kvtier_operator.planning.images import PUBLISHED, picker_image_name
from kvtier_operator.planning.objects.manifest import to_yaml
from kvtier_release.created import timestamp
from kvtier_release.oci import image_of_files
from kvtier_release.release import OPERATOR, Release
from kvtier_scorer.config.flavors import gaie, llm_d

PACKAGE: Final = "kvtier"
CHANNEL: Final = "alpha"
_EXAMPLE: Final = "docs/user-guide/examples/first.yaml"
_LABELS: Final = {
    "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
    "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
    "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
    "operators.operatorframework.io.bundle.package.v1": PACKAGE,
    "operators.operatorframework.io.bundle.channels.v1": CHANNEL,
    "operators.operatorframework.io.bundle.channel.default.v1": CHANNEL,
}
_USERS: Final = ("runAsUser", "runAsGroup", "fsGroup")
_DESCRIPTION: Final = """\
kvtier gives a vLLM model a prefix cache beyond the GPU: CPU memory first, then local disk. One resource,
`KVCacheTier`, says how much; from it kvtier computes everything that has to agree.

Operator Lifecycle Manager installs no ValidatingAdmissionPolicy. Until somebody applies policy, binding and
ClusterRole `kvtier-operator-edit` of `install.yaml`, only cluster administrators may write KVCacheTiers:
without the policy a KVCacheTier can do more than the role `edit`.
"""


def bundle_files(root: Path, release: Release) -> dict[str, bytes]:
    """The bundle's files by path."""
    install = Installation(image=release.references()[OPERATOR], images=release.installed_images())
    documents = {
        f"manifests/{PACKAGE}.clusterserviceversion.yaml": _service_version(root, release, install),
        f"manifests/{CRD_NAME}.yaml": crd(),
        f"manifests/{install.name}-view_clusterrole.yaml": view_role(install),
        f"manifests/{install.name}_service.yaml": _without_namespace(service(install)),
        "metadata/annotations.yaml": {"annotations": _LABELS},
    }
    return {name: to_yaml((document,)).encode() for name, document in documents.items()}


def bundle_archive(root: Path, release: Release) -> bytes:
    """The bundle as an image's OCI archive."""
    return image_of_files(bundle_files(root, release), _LABELS, release.version, release.created_s)


def _service_version(root: Path, release: Release, install: Installation) -> dict[str, Any]:
    example = yaml.safe_load((root / _EXAMPLE).read_text(encoding="utf-8"))
    rights = [each.manifest() for each in EVERYTHING]
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": f"{PACKAGE}.v{release.version}",
            "namespace": "placeholder",
            "annotations": {
                "alm-examples": json.dumps([example], indent=2),
                "capabilities": "Basic Install",
                "categories": "AI/Machine Learning",
                "containerImage": install.image,
                "createdAt": timestamp(release.created_s),
                "description": "A prefix cache beyond the GPU for vLLM, from one KVCacheTier resource",
            },
        },
        "spec": {
            "displayName": "kvtier",
            "description": _DESCRIPTION,
            "version": release.version,
            "minKubeVersion": f"{OLDEST_KUBERNETES}.0",
            "maturity": CHANNEL,
            "keywords": ["vllm", "kv cache", "prefix cache", "llm"],
            "provider": {"name": "kvtier"},
            "installModes": [
                {"type": mode, "supported": mode == "AllNamespaces"}
                for mode in ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
            ],
            "customresourcedefinitions": {
                "owned": [
                    {
                        "name": CRD_NAME,
                        "kind": KIND,
                        "version": VERSION,
                        "displayName": KIND,
                        "description": f"Tiers of a model's prefix cache ({GROUP})",
                    }
                ]
            },
            "relatedImages": [
                {"name": name, "image": image} for name, image in sorted(_related_images(release).items())
            ],
            "install": {
                "strategy": "deployment",
                "spec": {
                    "deployments": [
                        {"name": install.name, "spec": _without_user(deployment(install)["spec"])}
                    ],
                    "clusterPermissions": [{"serviceAccountName": install.name, "rules": rights}],
                },
            },
        },
    }


def _related_images(release: Release) -> dict[str, str]:
    """What a mirror needs: the release's own, and those of others that pods run unless told otherwise."""
    tested = {Flavor.LLM_D: llm_d.TESTED_VERSION, Flavor.GAIE: gaie.TESTED_VERSION}
    pickers = {picker_image_name(each): picker_image(each, version) for each, version in tested.items()}
    published = {name.value: image for name, image in PUBLISHED.items()}
    return {**published, **pickers, **release.references()}


def _without_user(spec: dict[str, Any]) -> dict[str, Any]:
    """OpenShift gives pods users of its own and refuses others; elsewhere it is the image's."""
    pod = spec["template"]["spec"]
    security = {name: value for name, value in pod["securityContext"].items() if name not in _USERS}
    return {**spec, "template": {**spec["template"], "spec": {**pod, "securityContext": security}}}


def _without_namespace(document: dict[str, Any]) -> dict[str, Any]:
    """It is made where the operator is."""
    metadata = {name: value for name, value in document["metadata"].items() if name != "namespace"}
    return document | {"metadata": metadata}
