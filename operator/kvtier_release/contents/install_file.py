"""install.yaml: all that a cluster needs of kvtier, for kubectl alone."""

from typing import Final

from kvtier_operator.api.schema.crd import crd
from kvtier_operator.install import install_objects
from kvtier_operator.install.settings import Installation
from kvtier_operator.planning.objects.manifest import to_yaml
from kvtier_release.release import OPERATOR, Release

INSTALL_FILE: Final = "install.yaml"


def install_text(release: Release) -> str:
    """The objects of manifests/base with the release's images: the namespace, the CRD, the operator."""
    install = Installation(image=release.references()[OPERATOR], images=release.installed_images())
    namespace, *others = install_objects(install)
    return f"# kvtier {release.version}: kubectl apply --server-side -f {INSTALL_FILE}\n" + to_yaml(
        (namespace, crd(), *others)
    )
