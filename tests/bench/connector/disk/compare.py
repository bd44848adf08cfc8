"""Samples of the disk benchmark into a row of its report: medians, spreads and ratios."""

import os
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final, Protocol

from tests.bench.connector.disk.fio import ALL_MEMORY, HUGEPAGES_BYTES, Fio, FioMissingError
from tests.bench.connector.disk.lmcache_install import LMCacheMissingError, lmcache_environment
from tests.bench.connector.disk.process import side_process
from tests.bench.connector.disk.work import OPS, Op, Sample, Work

from kvtier_connector.bench.measure import Row, Run
from kvtier_connector.bench.region import reserve_hugepages

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Way:
    """One side in one of its variants, with its samples of one block size and direction, a round each."""

    side: str
    variant: str
    samples: Sequence[Sample]

    @property
    def gbps(self) -> float:
        """Median bandwidth in 1e9 bytes a second."""
        return median(self.rounds)

    @property
    def rounds(self) -> list[float]:
        """Bandwidth of each round in 1e9 bytes a second."""
        return [sample.bytes / sample.seconds / 1e9 for sample in self.samples]

    def figures(self) -> dict[str, Any]:
        """Return the variant's bandwidth, its quartiles, and CPU seconds for 2**30 bytes."""
        rounds = self.rounds
        low, _, high = quantiles(rounds) if len(rounds) > 1 else rounds * 3
        cpu = median(sample.cpu_seconds / sample.bytes * _GIB for sample in self.samples)
        return {"gbps": self.gbps, "gbps_quartiles": [low, high], "cpu_s_per_gib": cpu}


def row(block_bytes: int, op: Op, ways: Mapping[str, Sequence[Way]]) -> dict[str, Any]:
    """Return a row of the report.

    Args:
        block_bytes: size of a block.
        op: the direction.
        ways: each side's variants; a side that could not be measured has none, and null for its figures.

    Returns:
        For each side `<side>_gbps` and `<side>_cpu_s_per_gib` of its fastest variant; for each other side
        than kvtier `over_<side>`, kvtier's bandwidth over that: of the medians, and the median of the ratios
        of samples of one round; and all variants under `variants`.
    """
    best = {side: max(variants, key=lambda way: way.gbps, default=None) for side, variants in ways.items()}
    figures: dict[str, Any] = {"block_kib": block_bytes >> 10, "op": op}
    for side, way in best.items():
        measured = way.figures() if way else {}
        figures[f"{side}_gbps"] = measured.get("gbps")
        figures[f"{side}_cpu_s_per_gib"] = measured.get("cpu_s_per_gib")
    ours = best["kvtier"]
    for side, way in best.items():
        if side != "kvtier":
            figures[f"over_{side}"] = over(ours, way) if ours and way else None
    figures["variants"] = {
        side: {way.variant: way.figures() | _beside(ours, way) for way in variants}
        for side, variants in ways.items()
    }
    return figures


def over(ours: Way, other: Way) -> dict[str, float]:
    """Return how many times faster one is than the other."""
    pairs = [mine / theirs for mine, theirs in zip(ours.rounds, other.rounds, strict=True)]
    return {"of_medians": ours.gbps / other.gbps, "median_of_pairs": median(pairs)}


def _beside(ours: Way | None, way: Way) -> dict[str, Any]:
    return {"kvtier_over": over(ours, way)} if ours else {}


BLOCK_BYTES: Final = (128 << 10, 512 << 10, 2 << 20)
SIDES: Final = ("kvtier", "fio", "vllm_fs", "lmcache")
_APART: Final = {("vllm_fs", "16 prompts"): "vllm_fs_16_prompts", ("fio", ALL_MEMORY): "fio_all_memory"}
"""Variants that are a case of their own. All others are the same case: the fastest counts."""
_ROUNDS_OF_A_LIFE: Final = 5
"""After which every side starts anew: one whose file or memory lies badly, here or on the machine below a
virtual one, is as much as a third slower, and stays so."""
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a device that is not the limit
_ENGINE: Final = {"VLLM_LOGGING_LEVEL": "WARNING"}


class Contestant(Protocol):
    """What the benchmark needs of a side, wherever that runs."""

    name: str
    variants: tuple[str, ...]

    def ready(self) -> None:
        """Wait until all blocks are there."""

    def sample(self, op: Op, variant: str, seed: int) -> Sample:
        """Take one sample."""


def measure(run: Run, folder: Path, rounds: int) -> list[dict[str, Any]]:
    """Measure the folder's disk; see `bench_disk`."""
    return bench_disk(folder, log=run.log("disk"), say=run.say, rounds=rounds)


def measure_memory(run: Run, rounds: int) -> list[dict[str, Any]]:
    """Measure memory as if it were a disk, where the software's own cost shows."""
    return bench_disk(
        _MEMORY,
        log=run.log("disk-memory"),
        say=run.say,
        rounds=rounds,
        kept_bytes=256 << 20,
        sample_bytes=128 << 20,
    )


def bench_disk(  # noqa: PLR0913 - the last four are for tests and for disks of other sizes
    folder: Path,
    *,
    log: Path,
    say: Callable[[str], None],
    rounds: int = 15,
    kept_bytes: int = 512 << 20,
    sample_bytes: int = 256 << 20,
    block_bytes: Sequence[int] = BLOCK_BYTES,
    sides: Sequence[str] = SIDES,
) -> list[dict[str, Any]]:
    """Measure storing and loading blocks, past the page cache, with every side on files of the same size.

    The sides start anew every few rounds. In each round every variant of every side takes one sample, in an
    order drawn anew, so that a disk whose speed changes disturbs all alike. kvtier and fio have huge pages
    where the machine lets them be reserved; the others have the memory that they take.

    Args:
        folder: on the disk to be measured; what is written there is removed again.
        log: file for the sides' output; each side gets a suffix.
        say: is told of sides that cannot be measured, and how far it is.
        rounds: samples of each variant.
        kept_bytes: bytes of all blocks of a side, so four times this is taken from the disk.
        sample_bytes: bytes that one sample moves; sides but fio have memory for as many.
        block_bytes: sizes of blocks.
        sides: the sides to measure; kvtier is always one.

    Returns:
        For each block size and direction the row of `figures.row`, the machine's load average, by which a
        reader sees whether others were at work, and which huge pages were missing.

    Raises:
        ConnectorError: a side failed.
    """
    rows = []
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix="kvtier-bench-") as scratch,
        reserve_hugepages(2 * sample_bytes + HUGEPAGES_BYTES) as missing,
    ):
        if missing:
            say(f"{missing}; kvtier and fio use small pages")
        for size in block_bytes:
            work = Work(str(Path(scratch, str(size))), size, kept_bytes // size, sample_bytes // size)
            for figures in _measure_rows(work, sides, rounds, log, say):
                rows.append(figures | {"missing": missing})
                say(_line(figures))
    return rows


def rows(found: list[dict[str, Any]]) -> Iterator[Row]:
    """Return rows of what `bench_disk` returns."""
    for each in found:
        others = [
            f"{name} {each[key]:.2f}"
            for name, key in (
                ("fio", "fio_gbps"),
                ("fio into as much memory", "fio_all_memory_gbps"),
                ("vLLM fs", "vllm_fs_gbps"),
                ("LMCache", "lmcache_gbps"),
            )
            if each.get(key)
        ]
        yield (
            f"disk, {each['op']} of {each['block_kib']} KiB, GB/s",
            f"{each['kvtier_gbps']:.2f}",
            ", ".join(others),
            "0.95 of fio",
        )


@contextmanager
def _start_sides(
    work: Work, sides: Sequence[str], log: Path, say: Callable[[str], None]
) -> Iterator[list[Contestant]]:
    """Start the sides that can be had, one after the other; end them and remove their files at the end."""
    with tempfile.TemporaryDirectory(dir=Path(work.folder).parent) as files, ExitStack() as stack:
        contestants: list[Contestant] = []
        for name in sides:
            own = Work(str(Path(files, name)), work.block_bytes, work.blocks, work.sample_blocks)
            try:
                contestant = _contestant(name, own, log.with_suffix(f".{name}.log"), stack)
            except (FioMissingError, LMCacheMissingError) as error:
                say(str(error))
                continue
            contestant.ready()
            contestants.append(contestant)
        yield contestants


def _contestant(name: str, work: Work, log: Path, stack: ExitStack) -> Contestant:
    if name == "fio":
        return Fio(work, all_memory=True)
    environment = _ENGINE | lmcache_environment() if name == "lmcache" else _ENGINE
    return stack.enter_context(side_process(name, work, log=log, environment=environment))


def _measure_rows(
    work: Work, sides: Sequence[str], rounds: int, log: Path, say: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Yield the row of each direction."""
    order = random.Random(work.block_bytes)  # noqa: S311 - not a secret
    samples: dict[tuple[Op, str, str], list[Sample]] = {}
    for first in range(0, rounds, _ROUNDS_OF_A_LIFE):
        numbers = range(first, min(rounds, first + _ROUNDS_OF_A_LIFE))
        say(f"{work.block_bytes >> 10} KiB: rounds {numbers[0] + 1} to {numbers[-1] + 1} of {rounds}")
        with _start_sides(work, sides, log, say if first == 0 else _nobody) as contestants:
            ways = [(side, variant) for side in contestants for variant in side.variants]
            for op, number in product(OPS, numbers):
                for side, variant in order.sample(ways, len(ways)):
                    sample = side.sample(op, variant, number)
                    samples.setdefault((op, side.name, variant), []).append(sample)
    for op in OPS:
        found: dict[str, list[Way]] = {name: [] for name in sides}
        for (done, side_name, variant), each in samples.items():
            if done == op:
                name = _APART.get((side_name, variant), side_name)
                found.setdefault(name, []).append(Way(name, variant, each))
        yield row(work.block_bytes, op, found) | {"load_average": os.getloadavg()[0]}


def _nobody(_line: str) -> None:
    """What was said of a side is not said again."""


def _line(figures: dict[str, Any]) -> str:
    speeds = ", ".join(
        f"{name[: -len('_gbps')]} {speed:.2f}" if speed else f"{name[: -len('_gbps')]} none"
        for name, speed in figures.items()
        if name.endswith("_gbps")
    )
    return f"{figures['op']} of {figures['block_kib']} KiB, GB/s: {speeds}"
