"""Whether a disk tier ever makes a prompt wait longer: stand-ins of devices, and disks throttled."""

import hashlib
import heapq
import mmap
import random
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from vllm.v1.kv_offload.base import LookupResult, OffloadKey, ReqContext

from kvtier_connector.bench.measure import Row, Run
from kvtier_connector.config import KEY_BYTES
from kvtier_connector.core.behind.break_even import Pace, TokenSpan, WriteBudget
from kvtier_connector.core.disk.files.fingerprint import fingerprint
from kvtier_connector.core.disk.files.store import Store, StoreRequest
from kvtier_connector.core.disk.io.choose import depth_for, open_engine
from kvtier_connector.core.disk.io.engine import BlockIO, Completion, IOEngine
from kvtier_connector.core.disk.tier import DiskTier
from kvtier_connector.core.disk.transfers.loop import DiskLoop, DiskThread
from kvtier_connector.core.index.slots import TierGeometry
from kvtier_connector.vllm.offloading.manager import KVTierManager

_DISK_LOOK_S: Final = 0.0002
"""How often it is looked for what the engine within has done; it is faster than any disk here."""


class ThrottledEngine:
    """An IOEngine around a real one, one transfer after another at so many bytes a second.

    Args:
        within: does the work.
        bytes_per_s: of the disk, reads and writes together.
    """

    def __init__(self, within: IOEngine, bytes_per_s: float) -> None:
        self.name = f"throttled {within.name}"
        self.depth = within.depth
        self.joined_bytes = within.joined_bytes
        self._within = within
        self._bytes_per_s = bytes_per_s
        self._free_at_s = 0.0
        self._due_s = dict[int, float]()
        self._done = list[tuple[float, int, Completion]]()
        self._number = count()
        self._woken = threading.Event()
        self.is_throttled = True
        """Whether it is slow; the last writes of an engine that ends need not be waited for."""

    def submit(self, ios: Sequence[BlockIO]) -> None:
        """Take transfers on; each has its end in the disk's queue."""
        for io in ios:
            size_bytes = sum(part.nbytes for part in io.memory)
            self._free_at_s = max(self._free_at_s, time.monotonic()) + size_bytes / self._bytes_per_s
            self._due_s[io.tag] = self._free_at_s
        self._within.submit(ios)

    def take_completions(self, timeout_s: float) -> list[Completion]:
        """Return what has ended on the disk."""
        until_s = time.monotonic() + timeout_s
        while True:
            for completion in self._within.take_completions(0.0):
                heapq.heappush(self._done, (self._due_s[completion.io.tag], next(self._number), completion))
            now_s = time.monotonic()
            found = list[Completion]()
            while self._done and (self._done[0][0] <= now_s or not self.is_throttled):
                found.append(heapq.heappop(self._done)[2])
                del self._due_s[found[-1].io.tag]
            if found or self._woken.is_set() or now_s >= until_s:
                self._woken.clear()
                return found
            next_s = self._done[0][0] if self._done else until_s
            if self._within.in_flight:
                next_s = now_s + _DISK_LOOK_S
            self._woken.wait(max(0.0, min(until_s, next_s) - now_s))

    def wake(self) -> None:
        """Make `take_completions` return."""
        self._woken.set()

    def overdue(self, limit_s: float) -> list[BlockIO]:
        """Return nothing: a slow disk is what is measured."""
        del limit_s
        return []

    @property
    def in_flight(self) -> int:
        """Number of transfers that have not ended on the disk."""
        return len(self._due_s)

    def close(self) -> None:
        """Close the engine within."""
        self._within.close()


CHUNK_TOKENS: Final = 64
TOKEN_BYTES: Final = 147_456
"""Of KV: Qwen3-8B in bfloat16."""
_BLOCK_BYTES: Final = 64 << 10
SCALE: Final = CHUNK_TOKENS * TOKEN_BYTES / _BLOCK_BYTES
"""A chunk's bytes are so many times those that are moved here, and the disk is as many times slower."""
_SLOTS: Final = 1024
_TIMEOUT_S: Final = 600.0
_LOOK_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class StandIn:
    """An engine's scheduler and a device that only takes time.

    Args:
        manager: of the tiers.
        disk: the tier on disk.
        pace: of computing.
    """

    manager: KVTierManager
    disk: DiskTier
    pace: Pace

    def ask(self, name: str, tokens: int) -> tuple[float, int]:
        """Serve one prompt; returns the seconds to its first token, and its tokens that a tier had."""
        start_s = time.monotonic()
        context = ReqContext(name)
        keys = [_key(name, chunk) for chunk in range(tokens // CHUNK_TOKENS)]
        for chunk, key in enumerate(keys, start=1):
            context.set_offload_key_position(key, chunk * CHUNK_TOKENS)
        found = self._look_up(keys, context)
        if found:
            self.manager.prepare_load(keys[:found], context)
            self.manager.complete_load(keys[:found], context)
        computed = TokenSpan.of(found * CHUNK_TOKENS, tokens)
        self.disk.break_even.prefill.add(computed, self.compute(computed))
        seconds = time.monotonic() - start_s
        stored = self.manager.prepare_store(keys[found:], context)
        self.manager.complete_store(stored.keys_to_store, context)
        if self.manager.behind is not None:
            self.manager.behind.on_schedule_end()  # the next step's
        self.manager.on_request_finished(context)
        return seconds, found * CHUNK_TOKENS

    def compute(self, computed: TokenSpan) -> float:
        """Take the time that computing takes; returns it, in seconds."""
        start_s = time.monotonic()
        time.sleep(self.pace.seconds(computed))
        return time.monotonic() - start_s

    def _look_up(self, keys: list[OffloadKey], context: ReqContext) -> int:
        """Return how many chunks are in memory, once those are that are worth being read."""
        side = self.manager.behind
        if side is None:
            return 0
        while True:
            side.poll()
            states = [self.manager.lookup(key, context) for key in keys]
            hits = [state in {LookupResult.HIT, LookupResult.HIT_PENDING} for state in states]
            first = hits.index(False) if False in hits else len(hits)
            if LookupResult.HIT_PENDING not in states[:first]:
                return first
            side.on_schedule_end()
            side.wait()


@contextmanager
def stand_in(folder: Path, disk_bytes_per_s: float, pace: Pace) -> Iterator[StandIn]:
    """Start an engine over a folder, which an earlier one may have left.

    Args:
        folder: of the disk tier.
        disk_bytes_per_s: as it is for a model's own bytes.
        pace: of computing.
    """
    memory = mmap.mmap(-1, _SLOTS * _BLOCK_BYTES)
    views = [memoryview(memory)[slot * _BLOCK_BYTES : (slot + 1) * _BLOCK_BYTES] for slot in range(_SLOTS)]
    request = StoreRequest(
        path=folder,
        capacity_bytes=4 * _SLOTS * _BLOCK_BYTES,
        block_bytes=_BLOCK_BYTES,
        key_bytes=KEY_BYTES,
        fingerprint=fingerprint({"model": "stand-in"}),
        direct=True,
        holder="kvtier bench",
    )
    store = Store.open(request)
    within, _ = open_engine(depth_for(_BLOCK_BYTES), folder=folder)
    engine = ThrottledEngine(within, disk_bytes_per_s / SCALE)
    disk = DiskTier(
        DiskThread(DiskLoop(store, lambda: Store.open(request), engine, _TIMEOUT_S)),
        store,
        block_bytes=_BLOCK_BYTES,
        memory_of=lambda slot: (views[slot],),
        most_writes=_SLOTS,
        budget=WriteBudget(0, time.monotonic()),
    )
    manager = KVTierManager(TierGeometry(_SLOTS, _BLOCK_BYTES, 1, 1), {0: CHUNK_TOKENS}, with_events=False)
    manager.put_behind([disk], most_tokens=_SLOTS * CHUNK_TOKENS // 2)
    try:
        yield StandIn(manager, disk, pace)
    finally:
        engine.is_throttled = False
        while disk.is_busy and manager.behind is not None:
            disk.wait(_LOOK_S)
            manager.behind.poll()
        manager.shutdown()


def _key(name: str, chunk: int) -> OffloadKey:
    return OffloadKey(hashlib.sha256(f"{name}/{chunk}".encode()).digest() + bytes(4))


DISK_GBPS: Final = (0.1, 0.3, 1.0, 3.0, 10.0)
PROMPT_TOKENS: Final = (2_000, 8_000, 30_000)


@dataclass(frozen=True, slots=True)
class Device:
    """A stand-in for a device that computes: it sleeps.

    Args:
        prefill_tokens_s: tokens a second of a prompt of 2,000.
        sped_up: how many times faster everything is, the disk too, so that a slow device can be waited for.
    """

    prefill_tokens_s: float
    sped_up: float = 1.0

    @property
    def pace(self) -> Pace:
        """Dense layers, and attention that takes as long as they do at 32,768 tokens before a token."""
        token_s = 1 / self.prefill_tokens_s / self.sped_up
        return Pace(token_s, token_s / 32_768)


DEVICES: Final = (Device(2_000, sped_up=10), Device(33_000))
"""A CPU of some cores with a small model, and a GPU with one of 8 billion parameters."""


@dataclass(frozen=True, slots=True)
class _Served:
    """Seconds to the first token with the tier and without, and the tokens that the tier had."""

    on_s: float
    off_s: float
    found_tokens: int


def measure(run: Run, folder: Path, prompts: int = 4) -> list[dict[str, Any]]:
    """Measure every disk with every device and length; engines with and without the tier take turns.

    The folder takes the tiers' files: on a disk that is faster than what it stands for.

    Args:
        run: what all parts are told.
        folder: on that disk.
        prompts: of each length.

    Returns:
        A row for each: medians of seconds to the first token with the tier, without it, and of the disk
        alone; `ratio` of with to without, `p99_ratio` of their 99th percentiles with the prompts that were
        served before, `best_ratio` of with to the better of the two, and what share of the tokens was read.
    """
    found = list[dict[str, Any]]()
    for gbps in DISK_GBPS:
        for device in DEVICES:
            for tokens in PROMPT_TOKENS:
                row = never_slower_row(gbps, device, tokens, prompts=prompts, folder=folder)
                found.append(row)
                run.say(
                    f"{gbps:g} GB/s, {device.prefill_tokens_s:,.0f} tokens/s, {tokens:,} tokens: "
                    f"{row['ttft_on_s']:.3f} s with the tier, {row['ttft_off_s']:.3f} s without"
                )
    return found


def rows(found: list[dict[str, Any]]) -> Iterator[Row]:
    """Return rows of what `measure` returns."""
    for each in found:
        speeds = f"{each['disk_gbps']:g} GB/s, {each['prefill_tokens_s']:,.0f} tokens/s"
        ratios = f"ratio {each['ratio']:.3f}, p99 {each['p99_ratio']:.3f}"
        yield (
            f"TTFT with a disk of {speeds}, {each['prompt_tokens']:,} tokens, s",
            f"{each['ttft_on_s']:.3f}, {each['from_disk']:.0%} read; {ratios}",
            f"no tier {each['ttft_off_s']:.3f}, disk alone {each['ttft_disk_s']:.3f}",
            "ratio 1.05",
        )


def never_slower_row(
    gbps: float, device: Device, tokens: int, *, prompts: int, folder: Path
) -> dict[str, Any]:
    """Measure one disk with one device and length; see `measure`."""
    names = [f"{tokens}/{number}" for number in range(prompts)]
    disk_bytes_per_s = gbps * 1e9 * device.sped_up
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        with stand_in(Path(scratch), disk_bytes_per_s, device.pace) as before:
            cold = [_serve(before, name, tokens) for name in names]
        with stand_in(Path(scratch), disk_bytes_per_s, device.pace) as after:
            warm = [_serve(after, name, tokens) for name in names]
    on, off = [each.on_s for each in warm], [each.off_s for each in cold + warm]
    disk_s = tokens * TOKEN_BYTES / disk_bytes_per_s
    every_on = [each.on_s for each in cold + warm]
    return {
        "disk_gbps": gbps,
        "prefill_tokens_s": device.prefill_tokens_s,
        "sped_up": device.sped_up,
        "prompt_tokens": tokens,
        "ttft_on_s": median(on),
        "ttft_off_s": median(off),
        "ttft_disk_s": disk_s,
        "ratio": median(on) / median(off),
        "p99_ratio": float(np.percentile(every_on, 99) / np.percentile(off, 99)),
        "best_ratio": median(on) / min(median(off), disk_s),
        "from_disk": sum(each.found_tokens for each in warm) / (tokens * prompts),
    }


def _serve(engine: StandIn, name: str, tokens: int) -> _Served:
    """Serve a prompt with the tier and without, in an order drawn by its name."""

    def without() -> float:
        return engine.compute(TokenSpan.of(0, tokens))

    if random.Random(name).choice((True, False)):  # noqa: S311 - not a secret
        off_s = without()
        on_s, found_tokens = engine.ask(name, tokens)
    else:
        on_s, found_tokens = engine.ask(name, tokens)
        off_s = without()
    return _Served(on_s, off_s, found_tokens)
