"""Probes everything that an engine demands."""

from collections.abc import Iterator
from typing import Final

from kvtier_operator.doctor.hugepages import (
    HugepagesFacts,
    huge_pages_unused,
    hugepages,
    page_costs,
    probe_hugepages,
)
from kvtier_operator.doctor.memlock import memlock, probe_memlock
from kvtier_operator.doctor.memory import memory, probe_memory, probe_shared_memory, shared_memory
from kvtier_operator.doctor.store import store
from kvtier_operator.doctor.verdict import Place, Verdict
from kvtier_operator.doctor.volume import probe_volume, volume
from kvtier_operator.planning.pod.demands import Demands
from kvtier_operator.planning.units import MIB

_USUAL_PAGE_BYTES: Final = 2 * MIB


def examine(demands: Demands, place: Place) -> Iterator[Verdict]:
    """The verdict of every check that the demands call for, in the order of the report."""
    pages = probe_hugepages(demands.hugepages) if demands.hugepages else None
    yield memory(_ordinary_bytes(demands, pages, place), probe_memory(), place)
    yield shared_memory(demands.shm_bytes, probe_shared_memory(), place)
    if demands.hugepages and pages:
        yield hugepages(demands.hugepages, pages, place)
    elif demands.ordinary_tier_bytes and not place.in_pod:  # a pod that asks for none gets none
        unused = huge_pages_unused(demands.ordinary_tier_bytes, page_costs(_USUAL_PAGE_BYTES), place)
        if unused:
            yield unused
    if demands.memlock:
        yield memlock(demands.memlock, probe_memlock(demands.memlock), place)
    for wanted in demands.volumes:
        yield volume(wanted, probe_volume(wanted), place)
    if demands.remote:
        yield from store(demands.remote)


def _ordinary_bytes(demands: Demands, pages: HugepagesFacts | None, place: Place) -> int:
    """What is taken of ordinary memory: a tier that prefers huge pages takes those that are free first."""
    wanted = demands.hugepages
    if wanted is None or wanted.required or pages is None or place.in_pod:
        return demands.memory_bytes
    return demands.memory_bytes - min((pages.free_pages or 0) * wanted.page_bytes, wanted.bytes)
