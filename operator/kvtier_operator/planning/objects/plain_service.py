"""What decides to whom a Service leads, and is nobody else's to set."""

from collections.abc import Mapping
from typing import Any, Final

PLAIN_SERVICE: Final[Mapping[str, Any]] = {
    # Kubernetes' own defaults, written out: a field that is not sent stays as somebody else set it
    "type": "ClusterIP",
    "sessionAffinity": "None",
    "publishNotReadyAddresses": False,
    "externalIPs": [],
}
"""The same for engines, picker and gateway."""
