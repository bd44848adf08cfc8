"""What `kvtier bench connector` can measure, by name; imports nothing, for the command line lists it."""

from typing import Final

PARTS: Final = (
    "index",
    "hit_rate",
    "region",
    "disk",
    "disk_memory",
    "ttft",
    "ttft_disk",
    "workloads",
    "overhead",
    "never_slower",
    "growth",
)
GPU: Final = "gpu"
"""Only where it is asked for: the other parts need none."""
