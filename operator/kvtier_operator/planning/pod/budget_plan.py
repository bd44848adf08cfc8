"""The engine pod's resources, line by line."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """One line of the pod's memory or disk: what takes `bytes`, and why that many."""

    what: str
    bytes: int
    why: str


@dataclass(frozen=True, slots=True)
class Budget:
    """The pod's resources.

    Attributes:
        memory: The lines whose sum is the memory limit. Explicit huge pages are not among them: the
            kernel accounts them apart.
        storage: The lines whose sum is the request for the node's own disk; empty where there is none.
        requests: The engine pod's requests, as quantities.
        limits: Its limits.
        shm_bytes: Size of /dev/shm.
        startup_s: Seconds until the engine must be ready: loading weights, taking the tier's memory, reading
            the disk's index.
        fetch_s: Seconds before that, until the weights are there: by a fetcher, or in an image.
    """

    memory: tuple[BudgetLine, ...]
    storage: tuple[BudgetLine, ...]
    requests: Mapping[str, str]
    limits: Mapping[str, str]
    shm_bytes: int
    startup_s: int
    fetch_s: int = 0
