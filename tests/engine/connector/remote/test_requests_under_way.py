"""A thousand requests are under way before a real store when that dies."""

import hashlib
import mmap
import signal
import threading
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.shared.stores import ENOUGH_S, Store, running, time_for_values

from kvtier_common.backoff import Backoff
from kvtier_connector.config import KEY_BYTES
from kvtier_connector.core.disk.files.fingerprint import fingerprint
from kvtier_connector.core.index.slots import TierGeometry
from kvtier_connector.core.remote.resp.connect import connect
from kvtier_connector.core.remote.tier import RemoteTier
from kvtier_connector.core.remote.transfers import RemoteThreads, RemoteTimings
from kvtier_connector.core.remote.values import BlockLayout

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

REQUESTS = 1000
CHUNKS = 3  # of each prompt
CHUNK_TOKENS = 64
BLOCK_BYTES = 16 << 10
SLOTS = 96  # of the memory: far fewer than all prompts have
BEFORE_IT_DIES = 200  # requests that the store has served
A_WHILE_S = 10.0  # what those under way wait for a store that has stopped

LAYOUT = BlockLayout("team", lambda: fingerprint({"model": "m"}), BLOCK_BYTES)


@dataclass
class Request:
    """A prompt whose chunks the store has."""

    name: str
    context: Any
    keys: list[Any]
    loaded: int = field(default=-1)  # chunks that came from a tier; -1 while it waits

    @property
    def is_waiting(self) -> bool:
        return self.loaded < 0


def content(key: bytes) -> bytes:
    return hashlib.shake_128(key).digest(BLOCK_BYTES)


def requests() -> list[Request]:
    from vllm.v1.kv_offload.base import OffloadKey, ReqContext  # noqa: PLC0415 - takes seconds

    made = list[Request]()
    for number in range(REQUESTS):
        context = ReqContext(str(number))
        digests = [hashlib.sha256(f"{number}/{chunk}".encode()).digest() for chunk in range(CHUNKS)]
        keys = [OffloadKey(digest + bytes(KEY_BYTES - len(digest))) for digest in digests]
        for chunk, key in enumerate(keys, start=1):
            context.set_offload_key_position(key, chunk * CHUNK_TOKENS)
        made.append(Request(context.req_id, context, keys))
    return made


def fill(store: Store, asked: Sequence[Request]) -> None:
    with closing(store.connect()) as connection:
        for request in asked:
            for key in request.keys:
                values = LAYOUT.values(key, (memoryview(bytearray(content(key))),))
                LAYOUT.seal(key, values)
                for value in values:
                    connection.put(value, 0, ENOUGH_S)


class Scheduler:
    """Serves requests as vLLM's does: looked up in every step until none of their chunks is on its way."""

    def __init__(self, store: Store) -> None:
        from kvtier_connector.vllm.offloading.manager import KVTierManager  # noqa: PLC0415 - takes seconds

        self._memory = mmap.mmap(-1, SLOTS * BLOCK_BYTES)
        self.views = [memoryview(self._memory)[at * BLOCK_BYTES :][:BLOCK_BYTES] for at in range(SLOTS)]
        threads = RemoteThreads(
            lambda: connect(store.access),
            LAYOUT,
            connections=4,
            ttl_s=0,
            connect_timeout_s=ENOUGH_S,
            timings=RemoteTimings(retry=Backoff(0.01, 0.1)),
        )
        self.tier = RemoteTier(
            threads,
            capacity_bytes=1 << 30,
            block_bytes=BLOCK_BYTES,
            memory_of=lambda slot: (self.views[slot],),
            most_writes=SLOTS,
            write_bytes_per_s=0,
            always=True,
        )
        geometry = TierGeometry(SLOTS, BLOCK_BYTES, 1, 1)
        self.manager = KVTierManager(geometry, {0: CHUNK_TOKENS}, with_events=False)
        self.manager.put_behind([self.tier], most_tokens=CHUNKS * CHUNK_TOKENS)
        self.behind = self.manager.behind
        assert self.behind is not None

    def step(self, waiting: Sequence[Request]) -> int:
        """Do what can be done now; returns how many requests were served."""
        assert self.behind is not None
        self.behind.poll()
        served = sum(self._serve(request) for request in waiting)
        self.behind.on_schedule_end()
        if not served:
            self.behind.wait()
        return served

    def _serve(self, request: Request) -> bool:
        from vllm.v1.kv_offload.base import LookupResult  # noqa: PLC0415 - takes seconds

        states = [self.manager.lookup(key, request.context) for key in request.keys]
        hits = [state in {LookupResult.HIT, LookupResult.HIT_PENDING} for state in states]
        found = hits.index(False) if False in hits else len(hits)
        if LookupResult.HIT_PENDING in states[:found]:
            return False
        keys = request.keys[:found]
        if keys:
            slots = self.manager.prepare_load(keys, request.context).slots
            for key, slot in zip(keys, slots.tolist(), strict=True):
                assert self.views[slot] == content(key), "another prompt's tokens"
            self.manager.complete_load(keys, request.context)
        request.loaded = found
        self.manager.on_request_finished(request.context)
        return True


@contextmanager
def nothing_left() -> Generator[None]:
    """Neither a thread nor a socket is left."""
    sockets, threads = len(psutil.Process().net_connections("tcp")), set(threading.enumerate())
    yield
    assert len(psutil.Process().net_connections("tcp")) <= sockets
    assert set(threading.enumerate()) <= threads


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
def test_none_fails_and_none_gets_other_bytes(tmp_path: Path, fault: signal.Signals) -> None:
    asked = requests()
    with time_for_values(A_WHILE_S), running("valkey", tmp_path) as store, nothing_left():
        fill(store, asked)
        scheduler = Scheduler(store)
        while scheduler.tier.is_down:
            scheduler.step([])
        while sum(not request.is_waiting for request in asked) < BEFORE_IT_DIES:
            scheduler.step([request for request in asked if request.is_waiting])
        store.process.send(fault)
        before = {request.name for request in asked if not request.is_waiting}
        while any(request.is_waiting for request in asked):
            scheduler.step([request for request in asked if request.is_waiting])
        after = [request for request in asked if request.name not in before]
        assert {request.loaded for request in asked if request.name in before} == {CHUNKS}
        assert any(request.loaded == 0 for request in after), "the store went on"
        while scheduler.tier.is_busy:
            scheduler.step([])
        assert scheduler.manager._index.reservable == SLOTS, "some memory is still somebody's"
        store.process.send(signal.SIGCONT)
        scheduler.manager.shutdown()
