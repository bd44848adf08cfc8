"""What decides whether and when a Deployment's pods are replaced, and is nobody else's to set."""

from collections.abc import Mapping
from typing import Any, Final

ROLLOUT: Final[Mapping[str, Any]] = {
    # Kubernetes' own defaults, written out: a field that is not sent stays as somebody else set it,
    # and after `kubectl rollout pause` no change of the resource would reach its pods
    "paused": False,
    "minReadySeconds": 0,
    "revisionHistoryLimit": 3,
}
"""The same for engines, picker and gateway."""
