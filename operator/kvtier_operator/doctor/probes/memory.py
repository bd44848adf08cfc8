"""How much ordinary memory may be taken."""

import os

from kvtier_common.kernel.cgroup import lowest_limit
from kvtier_operator.doctor.checks.memory import MemoryFacts


def look_at_memory() -> MemoryFacts:
    """The control groups' limit or physical memory, whichever is lower."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = lowest_limit(controller="memory", v1="memory.limit_in_bytes", v2="memory.max")
    if limit is not None and limit < physical:
        return MemoryFacts(limit, "the control group's limit")
    return MemoryFacts(physical, "physical memory")
