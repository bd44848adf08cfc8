"""What installs a release: the chart with its Artifact Hub file, install.yaml, and the bundle of OLM."""

import json
from pathlib import Path
from typing import Any, Final

import yaml

from kvtier_operator.api.resource import GROUP, KIND, VERSION
from kvtier_operator.api.schema.crd import CRD_NAME, crd
from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.generate.chart.files import CHART_NAME, OLDEST_KUBERNETES, chart_document
from kvtier_operator.generate.yaml_text import yaml_text
from kvtier_operator.install import install_objects
from kvtier_operator.install.deployment import deployment, service
from kvtier_operator.install.rbac import EVERYTHING, view_role
from kvtier_operator.install.settings import Installation
from kvtier_operator.planning.flavors import picker_image
from kvtier_operator.planning.images import PUBLISHED, picker_image_name
from kvtier_operator.planning.objects.manifest import to_yaml
from kvtier_release.commands import timestamp
from kvtier_release.oci import Content, artifact, as_json, image_of_files, tar_gz
from kvtier_release.release import FILE, OPERATOR, Release
from kvtier_scorer.config.flavors import gaie, llm_d

ARTIFACT_HUB_FILE: Final = "artifacthub-repo.yml"
ARTIFACT_HUB_TAG: Final = "artifacthub.io"
"""Where beside the chart Artifact Hub looks for it."""
_HUB_CONFIG: Final = "application/vnd.cncf.artifacthub.config.v1+yaml"
_HUB_LAYER: Final = "application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml"
_OF_TESTS: Final = "ci"
_CHART_CONFIG: Final = "application/vnd.cncf.helm.config.v1+json"
_CHART_LAYER: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
INSTALL_FILE: Final = "install.yaml"
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


def artifact_hub_text(repository_id: str, owner: str) -> str:
    """The whole file; Artifact Hub tells the id once the repository is there, `owner` is a mail address."""
    known: dict[str, Any] = {"repositoryID": repository_id} if repository_id else {}
    if owner:
        known["owners"] = [{"name": "kvtier", "email": owner}]
    missing = "" if repository_id else "# repositoryID: Artifact Hub gives it\n"
    return missing + (yaml.safe_dump(known, sort_keys=False) if known else "")


def artifact_hub_archive(text: str, seconds: int) -> bytes:
    """The file as Artifact Hub wants it in a registry: an OCI archive."""
    layer = Content(_HUB_LAYER, text.encode(), {"org.opencontainers.image.title": ARTIFACT_HUB_FILE})
    return artifact(Content(_HUB_CONFIG, b"{}"), layer, ARTIFACT_HUB_TAG, seconds)


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
    config = Content(_CHART_CONFIG, as_json(chart_about(release)))
    return artifact(config, Content(_CHART_LAYER, package), release.version, release.created_s)


def chart_about(release: Release) -> dict[str, Any]:
    """Chart.yaml of a release: the checkout's, and what Artifact Hub shows of it."""
    images = [{"name": name, "image": image} for name, image in sorted(release.references().items())]
    annotations = {
        "artifacthub.io/license": "Apache-2.0",
        "artifacthub.io/operator": "true",
        "artifacthub.io/images": yaml.safe_dump(images, sort_keys=False),
    }
    return chart_document() | {"annotations": annotations}


def install_text(release: Release) -> str:
    """The objects of manifests/base with the release's images: the namespace, the CRD, the operator."""
    install = Installation(image=release.references()[OPERATOR], images=release.installed_images())
    namespace, *others = install_objects(install)
    return f"# kvtier {release.version}: kubectl apply --server-side -f {INSTALL_FILE}\n" + to_yaml(
        (namespace, crd(), *others)
    )


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
    rights = [rule.manifest() for rule in EVERYTHING]
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
    pickers = {picker_image_name(minor): picker_image(minor, version) for minor, version in tested.items()}
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
