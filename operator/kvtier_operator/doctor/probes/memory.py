"""How much ordinary memory may be taken."""

from kvtier_common.kernel import memory_limit_bytes, physical_bytes
from kvtier_operator.doctor.checks.memory import MemoryFacts


def probe_memory() -> MemoryFacts:
    """The control groups' limit or physical memory, whichever is lower."""
    physical, limit = physical_bytes(), memory_limit_bytes()
    if limit is not None and limit < physical:
        return MemoryFacts(limit, "the control group's limit")
    return MemoryFacts(physical, "physical memory")
