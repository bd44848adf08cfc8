"""What was read of a resource, as the API server and its pods said it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kvtier_common.kubernetes.answers import Document
from kvtier_common.metrics.text import Families


@dataclass(frozen=True, slots=True)
class Seen:
    """One resource with its pods.

    Attributes:
        resource: The KVCacheTier.
        pods: Its engines' and pickers' pods; none where they may not be listed.
        metrics: What was found in the /metrics of each pod that was asked and answered, by its name.
        unread: What could not be read, and what would help, a line each.
    """

    resource: Document
    pods: tuple[Document, ...] = ()
    metrics: Mapping[str, Families] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
