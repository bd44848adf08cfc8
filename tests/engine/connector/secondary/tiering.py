"""vLLM's own tiering with one of our tiers behind it, without an engine: a test fills memory as a device."""

import hashlib
import itertools
import os
import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.engine.connector.offloading_config import offloading_config

from kvtier_connector.config import MIB

if TYPE_CHECKING:
    from kvtier_connector.core.disk.io.engine import BlockIO, Completion, IOEngine
    from kvtier_connector.vllm.secondary.tier import SecondaryTier

ROW_BYTES = 16 << 10
ROWS = 64
MOST_WRITES = ROWS // 4
ENTRY = {"type": "KVTierDisk", "module_path": "kvtier_connector.vllm.secondary_tier"}
QUIET_S = 60.0
KEYS = 12
ENGINE_OF_A_TEST = "kvtier-test-"
"""Begins the names of engines that vLLM's own tiering runs in, which it gives to their files in /dev/shm."""
_numbers = itertools.count()


def engine_id(name: object) -> str:
    """Return a name that no other worker's engine has."""
    return f"{ENGINE_OF_A_TEST}{os.getpid()}-{name}"


@contextmanager
def transfers(entry: Mapping[str, object]) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Give a function that returns the configuration of an engine with a name of its own and this tier."""
    names: list[str] = []

    def of(name: str) -> dict[str, Any]:
        names.append(engine_id(name))
        return {
            "kv_connector": "OffloadingConnector",
            "kv_role": "kv_both",
            "engine_id": names[-1],
            "kv_connector_extra_config": {
                "spec_name": "TieringOnCPU",
                "spec_module_path": "tests.engine.connector.secondary.tiering_on_cpu",
                "cpu_bytes_to_use": 8 * MIB,
                "secondary_tiers": [dict(entry)],
            },
        }

    yield of
    for name in names:  # vLLM leaves it where its processes end before its manager does
        Path(f"/dev/shm/vllm_offload_{name}.mmap").unlink(missing_ok=True)  # noqa: S108 - vLLM's place


def config(folder: Path, *, model: str = "m", **settings: object) -> Any:  # noqa: ANN401 - vLLM has no types
    """Return vLLM's offloading configuration with a disk tier."""
    entry = ENTRY | {"path": str(folder), "capacity_bytes": 4 * MIB, "namespace": "test"} | settings
    return with_tier(entry, model=model)


def with_tier(entry: dict[str, object], *, model: str = "m") -> Any:  # noqa: ANN401 - vLLM has no types
    base = offloading_config()
    return replace(
        base,
        model=replace(base.model, name=model),
        worker_kv_bytes_per_block=ROW_BYTES,
        engine_id=engine_id(next(_numbers)),
        extra_config={"cpu_bytes_to_use": ROWS * ROW_BYTES, "secondary_tiers": [entry]},
    )


def chunks(count: int, first: int = 0, hash_bytes: int = 32) -> list[Any]:
    from vllm.v1.kv_offload.base import make_offload_key  # noqa: PLC0415 - takes seconds

    hashes = (hashlib.sha256(bytes([number])).digest() for number in range(first, first + count))
    return [make_offload_key(digest[:hash_bytes], 0) for digest in hashes]


def content(key: bytes, size: int = ROW_BYTES) -> bytes:
    return hashlib.shake_128(key).digest(size)


@dataclass
class Tiering:
    """A real TieringOffloadingManager, driven step by step."""

    manager: Any
    requests: "itertools.count[int]" = field(default_factory=itertools.count)

    @classmethod
    def start(cls, settings: Any) -> "Tiering":  # noqa: ANN401 - vLLM has no types
        from vllm.v1.kv_offload.tiering.spec import TieringOffloadingSpec  # noqa: PLC0415 - takes seconds

        return cls(TieringOffloadingSpec(settings).get_manager())

    @property
    def tier(self) -> Any:  # noqa: ANN401 - a KVTierDisk or KVTierRemote, whose inside tests look at
        tier: SecondaryTier = self.manager.secondary_tiers[0]
        return tier

    def row(self, slot: int) -> memoryview:
        flat: memoryview = self.manager.primary_tier.get_kv_memoryview().cast("B")
        return flat[slot * ROW_BYTES : (slot + 1) * ROW_BYTES]

    def begin_store(self, keys: Sequence[Any]) -> list[int]:
        """Put chunks into memory, from which they go on to the disk; returns their slots."""
        request = self._request(keys)
        prepared = self.manager.prepare_store(keys, request)
        slots: list[int] = prepared.store_spec.chunk_ids.tolist()
        for key, slot in zip(prepared.keys_to_store, slots, strict=True):
            self.row(slot)[:] = content(key)
        self.manager.complete_store(set(prepared.keys_to_store), request)
        self.manager.on_request_finished(request)
        return slots

    def store(self, keys: Sequence[Any]) -> None:
        self.begin_store(keys)
        self.finish()

    def begin_load(self, keys: Sequence[Any]) -> Any:  # noqa: ANN401 - vLLM has no types
        from vllm.v1.kv_offload.base import LookupResult  # noqa: PLC0415 - takes seconds

        request = self._request(keys)
        while LookupResult.RETRY in self.lookup(keys, request):  # a tier has to be asked what it has
            self.tier._tier.wait(0.01)
            self.step()
        self.step()
        return request

    def load(self, keys: Sequence[Any]) -> list[Any]:
        """Return which of the chunks are in memory in the end, all of which have their own bytes."""
        from vllm.v1.kv_offload.base import LookupResult  # noqa: PLC0415 - takes seconds

        request = self.begin_load(keys)
        self.finish()
        found = dict(zip(keys, self.lookup(keys, request), strict=True))
        hits = [key for key, result in found.items() if result is LookupResult.HIT]
        self.check(hits, request)
        self.finish()
        self.manager.on_request_finished(request)
        return hits

    def check(self, keys: Sequence[Any], request: Any) -> None:  # noqa: ANN401 - vLLM has no types
        slots = self.manager.prepare_load(keys, request).chunk_ids.tolist()
        for key, slot in zip(keys, slots, strict=True):
            assert bytes(self.row(slot)) == content(key), "wrong bytes"
        self.manager.complete_load(keys, request)

    def lookup(self, keys: Sequence[Any], request: Any) -> list[Any]:  # noqa: ANN401 - vLLM has no types
        return [self.manager.lookup(key, request) for key in keys]

    def step(self) -> None:
        from vllm.v1.kv_offload.base import ScheduleEndContext  # noqa: PLC0415 - takes seconds

        self.manager.on_schedule_end(ScheduleEndContext((), ()))

    def finish(self) -> None:
        """Do the steps of an engine that has nothing else to do, until every job is reported."""
        until = time.monotonic() + QUIET_S
        while self.manager.has_pending_work():
            assert time.monotonic() < until, "a job is never reported"
            self.tier._tier.wait(0.01)
            self.step()

    def reset(self) -> None:
        """Have memory forget everything, with no copy to or from a device under way."""
        self.manager.reset_cache()
        if hasattr(
            self.manager, "on_reset_flushed"
        ):  # since vLLM 0.33, which reads nothing from disk until then
            self.manager.on_reset_flushed()

    def metrics(self) -> dict[str, float]:
        stats, prefix = self.manager.get_stats(), f"vllm:kvtier_{self.tier._tier.tier.label}_"
        found = {} if stats is None else stats.data["data"]
        return {
            name.removeprefix(prefix): values[()] for name, values in found.items() if name.startswith(prefix)
        }

    def _request(self, keys: Sequence[Any]) -> Any:  # noqa: ANN401 - vLLM has no types
        from vllm.v1.kv_offload.base import ReqContext  # noqa: PLC0415 - takes seconds

        request = ReqContext(f"request-{next(self.requests)}")
        for place, key in enumerate(keys):
            request.set_offload_key_position(key, place * 16)
        self.manager.on_new_request(request)
        return request


class Unsure:
    """Between the tier and the kernel: a disk that hangs, or fails, as long as it is told to."""

    def __init__(self, engine: "IOEngine") -> None:
        self._engine = engine
        self.name, self.depth, self.joined_bytes = engine.name, engine.depth, engine.joined_bytes
        self.hangs = False
        self.lets: Container[int] = ()  # places in the file that come through all the same
        self.error: OSError | None = None
        self._kept: list[Completion] = []
        self._since_s: dict[int, tuple[float, BlockIO]] = {}

    @classmethod
    def under(cls, tier: "SecondaryTier") -> "Unsure":
        opened: Any = tier._tier
        staged = opened._disk._loop.engine
        staged._engine = unsure = cls(staged._engine)
        return unsure

    def submit(self, ios: "Sequence[BlockIO]") -> None:
        self._since_s |= {io.tag: (time.monotonic(), io) for io in ios}
        self._engine.submit(ios)

    def take_completions(self, timeout_s: float) -> "list[Completion]":
        self._kept += self._engine.take_completions(min(timeout_s, 0.01))
        let = [each for each in self._kept if not self.hangs or each.io.offset in self.lets]
        self._kept = [each for each in self._kept if each not in let]
        ended = [replace(each, error=self.error) for each in let]
        for each in ended:
            del self._since_s[each.io.tag]
        return ended

    def overdue(self, limit_s: float) -> "list[BlockIO]":
        before = time.monotonic() - limit_s
        return [io for since_s, io in self._since_s.values() if since_s < before]

    def wake(self) -> None:
        self._engine.wake()

    @property
    def in_flight(self) -> int:
        return self._engine.in_flight + len(self._kept)

    def close(self) -> None:
        self._engine.close()


def view(rows: int, row_bytes: int) -> memoryview:
    """Return memory as vLLM gives it to its tiers, with rows of any length."""
    return np.zeros((rows, row_bytes), np.int8).data


def stored(tiering: Tiering, count: int = KEYS) -> list[Any]:
    """Have chunks on disk, and in memory no more."""
    keys = chunks(count)
    tiering.store(keys)
    tiering.reset()
    return keys


def until(tiering: Tiering, holds: Callable[[], bool]) -> None:
    """Do steps until something has happened on the disk's side."""
    waited = threading.Event()
    for _ in range(int(QUIET_S / 0.01)):
        tiering.tier._tier.wait(0.01)
        tiering.step()
        if holds():
            return
        waited.wait(0.01)
    raise AssertionError("it never happened")


Start = Callable[..., Tiering]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a tiering manager on the test's folder; one runs at a time."""
    running: list[Tiering] = []

    def begin(*, change: Callable[[Any], Any] = lambda it: it, **settings: object) -> Tiering:
        stop()
        running.append(Tiering.start(change(config(tmp_path / "disk", **settings))))  # type: ignore[arg-type]
        return running[-1]

    def stop() -> None:
        while running:
            running.pop().manager.shutdown()

    yield begin
    stop()
