"""What may differ between two installations of the operator."""

from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.planning.images import ImageSource

METRICS_PORT: Final = 8080
HEALTH_PORT: Final = 8081


@dataclass(frozen=True, slots=True)
class Installation:
    """One installation of the operator."""

    name: str = "kvtier-operator"  # name of every object of the operator itself
    namespace: str = "kvtier-system"  # namespace that it runs in
    image: str = ImageSource().operator()  # the operator's container image
    # the image with what attached engines run beside their own
    connector_image: str = ImageSource().connector()
    images: str = ""  # references in place of the published ones: NAME=REFERENCE, with commas between them

    @property
    def selector(self) -> dict[str, str]:
        """Labels of the operator's pods that never change."""
        return {"app.kubernetes.io/name": "kvtier-operator", "app.kubernetes.io/instance": self.name}

    @property
    def labels(self) -> dict[str, str]:
        """Labels of every object; never `managed-by: kvtier`, by which the operator knows its own objects."""
        return {
            **self.selector,
            "app.kubernetes.io/component": "operator",
            "app.kubernetes.io/part-of": "kvtier",
        }

    def metadata(self) -> dict[str, Any]:
        """Metadata of an object in the operator's namespace."""
        return {"name": self.name, "namespace": self.namespace, "labels": self.labels}

    def cluster_metadata(self) -> dict[str, Any]:
        """Metadata of an object of the whole cluster."""
        return {"name": self.name, "labels": self.labels}
