"""How long an engine waits at start for its region: on huge pages, transparent ones and 4 KiB ones.

What is timed is what an engine does, `region.create` and `region.attach`, and then `pin.lock`. The kinds take
turns in one process; the first round is thrown away, because in a virtual machine it is the host that has to
find the memory then. Huge pages are reserved for a benchmark's time, as an operator does on real nodes.
"""

import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from kvtier_connector.bench.measure import Row, Run
from kvtier_connector.config import GIB, HUGEPAGE_BYTES, Policy
from kvtier_connector.core.region import pin, region
from kvtier_connector.core.region.pages import free_pages, pieces_of
from kvtier_connector.core.region.report import SMALL, TRANSPARENT

PAGE_BYTES: Final = HUGEPAGE_BYTES[0]
_POOL: Final = Path("/proc/sys/vm/nr_hugepages")
_ALL: Final = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
"""Also counts pages that are in use beyond what the pool is set to (surplus)."""


@contextmanager
def reserve_hugepages(size_bytes: int) -> Iterator[str]:
    """Have huge pages of 2 MiB free for so much memory, then put the pool back; gives what is missing."""
    pages = -(-size_bytes // PAGE_BYTES)
    lacking = pages - free_pages(PAGE_BYTES)
    if lacking <= 0:
        yield ""
        return
    before = _POOL.read_text()
    try:
        _POOL.write_text(f"{int(_ALL.read_text()) + lacking}\n")
    except OSError as error:
        reason = f"{_POOL}: {error.strerror}"
        yield f"huge pages: {lacking} of {pages} missing and not to be reserved ({reason}); do it as root"
        return
    except BaseException:  # told to end while the kernel looked for pages, of which it has found some
        _POOL.write_text(before)
        raise
    try:
        lacking = pages - free_pages(PAGE_BYTES)
        yield f"huge pages: the kernel has no memory for {lacking} of {pages}" if lacking > 0 else ""
    finally:
        _POOL.write_text(before)


SAMPLE_BYTES: Final = GIB
ROUNDS: Final = 9
_OTHER_PAGE_BYTES: Final = HUGEPAGE_BYTES[1]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of region."""

    hugepages: Policy  # what is asked for
    hugepage_bytes: int  # the pages asked for; a size whose pool is empty leads one step down the ladder
    shared: bool  # for more processes than one
    wanted: str  # the report's kind; a sample of another kind is not counted


KINDS: Final = {
    "hugepage": Kind(Policy.PREFER, PAGE_BYTES, shared=True, wanted="hugetlbfs 2 MiB"),
    "transparent": Kind(Policy.PREFER, _OTHER_PAGE_BYTES, shared=False, wanted=TRANSPARENT),
    "page4k": Kind(Policy.NEVER, PAGE_BYTES, shared=False, wanted=SMALL),
    "page4k_shared": Kind(Policy.NEVER, PAGE_BYTES, shared=True, wanted=SMALL),
}
"""Ordinary pages are quicker to be had where one process uses them alone; that is what huge pages are
compared with, though theirs are shared."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One start, in seconds."""

    taken: float  # until the memory was there
    locked: float | None  # until it was locked, too; None where it was not to be locked


def measure(_run: Run) -> dict[str, Any]:
    """Measure the region's start on each kind of pages: medians of seconds a GiB, without and with locking.

    Beside them their spread (smallest and largest); None where the machine has no such pages. `missing` says
    why, or why there are fewer samples. `ratio` is 4 KiB pages over huge pages.
    """
    samples_of: dict[str, list[Sample]] = {name: [] for name in KINDS}
    with reserve_hugepages(SAMPLE_BYTES) as missing:
        for number in range(ROUNDS + 1):
            for name in list(KINDS)[:: -1 if number % 2 else 1]:
                sample = _start(KINDS[name])
                if number and sample:
                    samples_of[name].append(sample)
    taken_away = ROUNDS - len(samples_of["hugepage"])
    if taken_away and not missing:
        missing = f"huge pages: in {taken_away} of {ROUNDS} rounds other processes had taken some of the pool"
    figures: dict[str, Any] = {
        "gib": SAMPLE_BYTES / GIB,
        "samples": {name: len(samples) for name, samples in samples_of.items()},
        "cpus": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "missing": missing,
    }
    for name, samples in samples_of.items():
        figures |= _figures(f"{name}_s_per_gib", [sample.taken for sample in samples])
        locked = [sample.locked for sample in samples if sample.locked is not None]
        figures |= _figures(f"{name}_locked_s_per_gib", locked)
    for key, name in (("ratio", "s_per_gib"), ("ratio_locked", "locked_s_per_gib")):
        huge, small = figures[f"hugepage_{name}"], figures[f"page4k_{name}"]
        figures[key] = small / huge if huge and small else None
    return figures


def rows(region: dict[str, Any]) -> Iterator[Row]:
    """Return rows of what `measure` returns."""
    if region.get("ratio") is None:
        yield ("region's start on huge pages", "not measured", str(region.get("missing", "")), "")
        return
    yield (
        "region's start on huge pages, s a GiB",
        f"{region['hugepage_s_per_gib']:.3f}",
        f"4 KiB pages {region['page4k_s_per_gib']:.3f}",
        "",
    )
    yield ("  times faster", f"{region['ratio']:.1f}", "", "at least 4")


def _start(kind: Kind) -> Sample | None:
    """Make a region, lock it and let it go; None if the machine gave another kind of pages."""
    request = region.RegionRequest(1, SAMPLE_BYTES, kind.shared, kind.hugepages, kind.hugepage_bytes)
    gc.collect()  # what the last sample had is free again
    start = time.perf_counter()
    memory = region.alone(request)
    taken = time.perf_counter() - start
    report = pin.lock(memory, pieces_of(1, memory.size_bytes), pin.by_kernel(memory, Policy.PREFER))
    locked = time.perf_counter() - start if report.is_locked else None
    return Sample(taken, locked) if memory.report.got == kind.wanted else None


def _figures(name: str, seconds: list[float]) -> dict[str, Any]:
    s_per_gib = [value * GIB / SAMPLE_BYTES for value in seconds]
    return {
        name: median(s_per_gib) if s_per_gib else None,
        f"{name}_spread": [min(s_per_gib), max(s_per_gib)] if s_per_gib else None,
    }
