"""What volumes a pod template may add: the kinds that Pod Security's level restricted has, and images."""

from typing import Final

from kvtier_operator.planning.pod_template.containers import IN_HUGE_PAGES
from kvtier_operator.planning.pod_template.shape import (
    ANYTHING,
    BOOLEAN,
    LIST,
    MAPPING,
    TEXT,
    WORD,
    Choice,
    Fields,
    Items,
    Quantities,
)

_CLAIM: Final = Fields(
    {
        **dict.fromkeys(("storageClassName", "volumeMode", "volumeAttributesClassName"), TEXT),
        **dict.fromkeys(("selector", "dataSource", "dataSourceRef"), MAPPING),
        "accessModes": LIST,
        "resources": Fields(
            {"requests": Quantities(("storage",)), "limits": Quantities()}, required=("requests",)
        ),
    },
    required=("resources",),
)
_CLAIM_TEMPLATE: Final = Fields({"metadata": MAPPING, "spec": _CLAIM}, required=("spec",))
_IN_MEMORY: Final = Choice(("", "Memory"), IN_HUGE_PAGES)
_VOLUME: Final = Fields(
    {
        "name": TEXT,
        **dict.fromkeys(("configMap", "secret", "projected", "downwardAPI", "csi"), MAPPING),
        "emptyDir": Fields({"medium": _IN_MEMORY, "sizeLimit": ANYTHING}),
        "image": Fields({"reference": WORD, "pullPolicy": WORD}),
        "persistentVolumeClaim": Fields({"claimName": TEXT, "readOnly": BOOLEAN}, required=("claimName",)),
        "ephemeral": Fields({"volumeClaimTemplate": _CLAIM_TEMPLATE}, required=("volumeClaimTemplate",)),
    },
    {
        "hostPath": "folders of the node are asked for in spec.tiers.disk.volume or spec.model.volume, for "
        "which there is a right"
    },
)
VOLUMES: Final = Items("name", _VOLUME)
