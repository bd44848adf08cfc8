"""A limit to the memory that KVCacheTiers take in the operator, for each namespace and for all together.

Whoever may create one may create thousands, and the operator that they would kill serves everybody.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from kvtier_operator.api.schema.spec_size import MOST_SPEC_BYTES, too_long

MOST_OF_NAMESPACE_BYTES: Final = 64 << 20
MOST_BYTES: Final = 128 << 20
"""Of all: with the 70 MiB of an operator that serves none, below its limit of 256 MiB."""
OBJECTS_BYTES: Final = 48 << 10
"""Of a resource beside spec and status: its plan and what is kept of its objects (`make bench-operator`)."""


@dataclass(slots=True)
class MemoryLimit:
    """Counts the bytes that are kept for each namespace."""

    _namespace_bytes: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    _total_bytes: int = 0

    def refusal(self, namespace: str, spec_bytes: int, status_bytes: int) -> str:
        """Why one more resource does not fit, and what to do; empty where it fits.

        Args:
            namespace: Its namespace.
            spec_bytes: Length of its spec as JSON.
            status_bytes: Length of its status as JSON.
        """
        if spec_bytes > MOST_SPEC_BYTES:
            return too_long(spec_bytes).message
        more = OBJECTS_BYTES + spec_bytes + status_bytes
        if self._namespace_bytes.get(namespace, 0) + more > MOST_OF_NAMESPACE_BYTES:
            return _full(f"the KVCacheTiers of namespace {namespace}", MOST_OF_NAMESPACE_BYTES)
        if self._total_bytes + more > MOST_BYTES:
            return _full("all KVCacheTiers of the cluster", MOST_BYTES)
        return ""

    def add(self, namespace: str, count_bytes: int) -> None:
        """Counts bytes that are kept for a namespace from now on, or no longer where negative."""
        self._total_bytes += count_bytes
        self._namespace_bytes[namespace] += count_bytes
        if not self._namespace_bytes[namespace]:
            del self._namespace_bytes[namespace]  # namespaces come and go


def _full(whose: str, most_bytes: int) -> str:
    return (
        f"{whose} have no room left in the {most_bytes >> 20} MiB that the operator has for them: delete "
        "some or make their specs shorter; this one is looked at again within minutes"
    )
