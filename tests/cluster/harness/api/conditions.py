"""What a KVCacheTier's status says."""

from collections.abc import Mapping
from typing import Any


def is_ready(resource: Mapping[str, Any]) -> bool:
    """Whether it is Ready as it is now: the condition speaks of its present generation."""
    return any(
        condition["type"] == "Ready"
        and condition["status"] == "True"
        and condition.get("observedGeneration") == resource["metadata"]["generation"]
        for condition in resource.get("status", {}).get("conditions", ())
    )
