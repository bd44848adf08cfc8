"""What a KVCacheTier's status says."""

from collections.abc import Mapping
from typing import Any


def is_ready(resource: Mapping[str, Any]) -> bool:
    """Whether it is Ready as it is now: the condition speaks of its present generation."""
    return any(
        each["type"] == "Ready"
        and each["status"] == "True"
        and each.get("observedGeneration") == resource["metadata"]["generation"]
        for each in resource.get("status", {}).get("conditions", ())
    )
