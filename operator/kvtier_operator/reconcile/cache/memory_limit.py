"""How much of the operator's memory KVCacheTiers may take: no namespace all of it, and all together not more.

Whoever may make one may make thousands, and the operator that they would end is everybody's.
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
class Room:
    """What is taken of it, and by which namespace."""

    _taken: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    _all: int = 0

    def refusal(self, namespace: str, spec_bytes: int, status_bytes: int) -> str:
        """Why one more resource cannot be taken, and what to do; empty for one that can.

        Args:
            namespace: Its namespace.
            spec_bytes: Length of its spec as JSON.
            status_bytes: Length of its status as JSON.
        """
        if spec_bytes > MOST_SPEC_BYTES:
            return too_long(spec_bytes).message
        more = OBJECTS_BYTES + spec_bytes + status_bytes
        if self._taken.get(namespace, 0) + more > MOST_OF_NAMESPACE_BYTES:
            return _full(f"the KVCacheTiers of namespace {namespace}", MOST_OF_NAMESPACE_BYTES)
        if self._all + more > MOST_BYTES:
            return _full("all KVCacheTiers of the cluster", MOST_BYTES)
        return ""

    def take(self, namespace: str, count_bytes: int) -> None:
        """So much more is kept for a namespace, or less where negative."""
        self._all += count_bytes
        self._taken[namespace] += count_bytes
        if not self._taken[namespace]:
            del self._taken[namespace]  # namespaces come and go


def _full(whose: str, most_bytes: int) -> str:
    return (
        f"{whose} have no room left in the {most_bytes >> 20} MiB that the operator has for them: delete "
        "some or make their specs shorter; this one is looked at again within minutes"
    )
