"""Real engines with a disk tier: warm after whatever happened, and never a wrong token."""

import pickle
import random
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest
from tests.engine.connector.disk_engine import CHUNK_BYTES, DiskEngine
from tests.engine.connector.prompts import CACHED, PROMPTS, answers, metric, prompt, tokens_of

from kvtier_connector.config import MIB
from kvtier_connector.core.disk.files.store import Store, StoreRequest

# What vLLM and PyTorch warn of is not ours.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


def test_warm_from_disk(
    disk_engine: DiskEngine, disk_pays: set[float], known: Path, cold: list[list[int]], tmp_path: Path
) -> None:
    disk_engine.restart(Path(shutil.copytree(known, tmp_path / "disk")))
    loaded = metric(disk_engine.llm, "vllm:kvtier_disk_load_bytes")
    assert disk_engine.ask() == (cold, CACHED)
    assert metric(disk_engine.llm, "vllm:kvtier_disk_load_bytes") - loaded == 39 * CHUNK_BYTES
    assert metric(disk_engine.llm, "vllm:kvtier_disk_used_bytes") >= 39 * CHUNK_BYTES
    assert metric(disk_engine.llm, "vllm:kvtier_disk_degraded") == 0
    assert disk_pays == {CHUNK_BYTES / 32}, "the break-even is asked for something else"


def test_requests_side_by_side_that_share_what_is_on_disk(
    disk_engine: DiskEngine, known: Path, tmp_path: Path
) -> None:
    longest = PROMPTS[-1]
    asked = [longest + prompt(40, 1), longest[:320] + prompt(50, 2), longest + prompt(70, 3), prompt(90, 4)]
    disk_engine.leave()
    alone = [answers(disk_engine.llm, [ids])[0][0] for ids in asked]
    disk_engine.restart(Path(shutil.copytree(known, tmp_path / "disk")))
    found = answers(disk_engine.llm, asked)
    assert tokens_of(found) == alone
    assert [cached for _, cached in found] == [640, 320, 640, 0]


def chunks_of(folder: Path, engine: DiskEngine) -> tuple[StoreRequest, dict[bytes, bytes]]:
    """Return how an engine opens its folder, and the chunks that are in it."""
    store = engine.disk._store
    assert store is not None
    request = StoreRequest(
        folder,
        3 * MIB,
        CHUNK_BYTES,
        store.shape.key_bytes,
        engine.fingerprint,
        direct=True,
        holder="a test",
    )
    slots, keys = store.index.rows(0, store.shape.slots)
    payloads = {}
    for slot, key in zip(slots.tolist(), keys, strict=True):
        place = store.segments.place(slot)
        path = Path(f"/proc/self/fd/{place.descriptor}").readlink()
        payloads[key.tobytes()] = path.read_bytes()[place.offset : place.offset + CHUNK_BYTES]
    return request, payloads


@pytest.mark.parametrize("kills", [8, pytest.param(100, marks=pytest.mark.long)])
def test_killed_at_any_moment_while_it_stores(
    disk_engine: DiskEngine, known: Path, cold: list[list[int]], tmp_path: Path, kills: int
) -> None:
    disk_engine.restart(Path(shutil.copytree(known, tmp_path / "known")))
    request, chunks = chunks_of(tmp_path / "killed", disk_engine)
    assert len(chunks) >= 39
    # So small that chunks give way to others all the time.
    capacity_bytes = request.capacity_bytes // 2
    file = tmp_path / "chunks"
    file.write_bytes(pickle.dumps((replace(request, capacity_bytes=capacity_bytes), chunks)))
    moments = random.Random(1)  # noqa: S311 - not for secrets
    warm = survived = 0
    for kill in range(kills):
        disk_engine.leave()
        with subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "tests.engine.connector.disk.killed_writer", file, str(kill)],
            stdout=subprocess.PIPE,
        ) as writer:
            assert writer.stdout
            assert writer.stdout.readline() == b"ready\n"
            for _ in range(moments.randrange(3)):
                assert writer.stdout.readline() == b"stored\n"
            sleep(moments.uniform(0, 0.05))  # the moment is the test's, not a wait for anything
            writer.send_signal(signal.SIGKILL)
        disk_engine.enter(tmp_path / "killed", capacity_bytes)
        survived += any(map(disk_engine.disk.holds, chunks))
        tokens, cached = disk_engine.ask(PROMPTS[:5] if kill % 4 else PROMPTS)
        assert tokens == cold[: len(tokens)], f"wrong tokens after kill {kill}"
        warm += sum(cached) > 0
    found = f"{survived} starts found chunks, {warm} the beginnings of prompts"
    print(f"{kills} kills, {found}, 0 wrong tokens")  # noqa: T201 - figures, seen with -s
    # Which are there is chance: a prompt's first ones are among them in nearly half of the starts.
    assert survived > kills // 2
    assert metric(disk_engine.llm, "vllm:kvtier_disk_degraded") == 0


DAMAGES = ("flip", "zero", "truncate", "swap", "shift", "stale index", "index flip", "index cut")


def damage_blocks(folder: Path, kind: str, chance: random.Random) -> None:
    """Do something to a folder's blocks that a disk or an administrator might."""
    (blocks,) = folder.glob("*/blocks-000000")
    payload = np.fromfile(blocks, np.uint8)
    slots = payload[: len(payload) // CHUNK_BYTES * CHUNK_BYTES].reshape(-1, CHUNK_BYTES)
    if kind == "flip":
        for slot in slots:
            slot[chance.randrange(CHUNK_BYTES)] ^= 1 << chance.randrange(8)
    elif kind == "zero":
        slots[chance.randrange(5) :: 2] = 0
    elif kind == "truncate":
        payload = payload[: chance.randrange(len(payload))]
    elif kind == "swap":
        slots[:] = np.roll(slots, chance.randrange(1, 30), axis=0)
    elif kind == "shift":
        payload = np.roll(payload, chance.randrange(1, CHUNK_BYTES))
    payload.tofile(blocks)


def damage_index(folder: Path, kind: str, chance: random.Random, old_index: bytes) -> None:
    """Do the same to its index."""
    (index,) = folder.glob("*/index")
    content = bytearray(index.read_bytes())
    if kind == "stale index":
        content = bytearray(old_index)
    elif kind == "index flip":
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif kind == "index cut":
        content = content[: chance.randrange(len(content))]
    index.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        *(pytest.param((kind, 2), id=kind) for kind in DAMAGES),
        *(pytest.param((kind, 8), id=f"{kind}, more often", marks=pytest.mark.long) for kind in DAMAGES),
    ],
)
def test_damage_gives_no_wrong_token(
    disk_engine: DiskEngine, known: Path, cold: list[list[int]], tmp_path: Path, damage: tuple[str, int]
) -> None:
    kind, folders = damage
    chance = random.Random(kind)  # noqa: S311 - not for secrets
    # An index from when other chunks were in these slots.
    disk_engine.restart(tmp_path / "old")
    disk_engine.ask([prompt(length, 5) for length in (400, 500, 300)])
    disk_engine.leave()
    (old,) = (tmp_path / "old").glob("*/index")
    dropped = 0.0
    for number in range(folders):
        folder = Path(shutil.copytree(known, tmp_path / str(number)))
        damage_blocks(folder, kind, chance)
        damage_index(folder, kind, chance, old.read_bytes())
        before = metric(disk_engine.llm, "vllm:kvtier_disk_corrupt_chunks")
        disk_engine.restart(folder)
        tokens, cached = disk_engine.ask()
        assert tokens == cold
        assert sum(cached) <= sum(CACHED)
        if kind in ("flip", "swap", "shift"):
            assert sum(cached) == 0, "damaged chunks were believed"
        dropped += metric(disk_engine.llm, "vllm:kvtier_disk_corrupt_chunks") - before
        # What was damaged is written again.
        disk_engine.restart(folder)
        assert disk_engine.ask() == (cold, CACHED)
    print(f"{kind}: {folders} folders, {dropped:.0f} chunks found damaged, 0 wrong tokens")  # noqa: T201 - figures, seen with -s


def test_a_folder_that_is_deleted_underneath(
    disk_engine: DiskEngine, known: Path, cold: list[list[int]], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(known, tmp_path / "disk"))
    disk_engine.restart(folder)
    shutil.rmtree(folder)
    folder.touch()  # so that it cannot be made again at once
    while not disk_engine.disk.is_down:
        assert disk_engine.disk._disk.wait(60), "nobody notices"
        disk_engine.connector._manager.behind.poll()
    assert disk_engine.ask() == (cold, [0] * len(PROMPTS))
    assert metric(disk_engine.llm, "vllm:kvtier_disk_degraded") == 1
    folder.unlink()
    while disk_engine.disk.is_down:
        assert disk_engine.disk._disk.wait(90), "it does not come back"
        disk_engine.connector._manager.behind.poll()
    assert disk_engine.ask() == (cold, CACHED)  # from memory or the device; and it is written when it is used
    assert metric(disk_engine.llm, "vllm:kvtier_disk_degraded") == 0
    disk_engine.restart(folder)
    assert disk_engine.ask() == (cold, CACHED)


def test_weights_that_changed_reset_the_disk_too(
    disk_engine: DiskEngine, known: Path, cold: list[list[int]], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(known, tmp_path / "disk"))
    disk_engine.restart(folder)
    assert disk_engine.llm.reset_prefix_cache(reset_connector=True)
    assert disk_engine.ask() == (cold, [0] * len(PROMPTS))
    disk_engine.settle()
    assert disk_engine.disk.used == sum(CACHED) // 32
    disk_engine.restart(
        folder
    )  # with the weights of its files, which may not be those that were put in their place
    assert disk_engine.ask() == (cold, [0] * len(PROMPTS))
    disk_engine.restart(folder)
    assert disk_engine.ask() == (cold, CACHED)


def test_prompts_of_another_salt_are_others(disk_engine: DiskEngine, tmp_path: Path) -> None:
    def cached(salt: str) -> int:
        how = SamplingParams(temperature=0, max_tokens=1, detokenize=False)
        asked = {"prompt_token_ids": PROMPTS[-1], "cache_salt": salt}
        (output,) = disk_engine.llm.generate([asked], how, use_tqdm=False)
        return int(output.num_cached_tokens)

    from vllm import SamplingParams  # noqa: PLC0415 - takes seconds

    disk_engine.restart(tmp_path / "disk")
    assert cached("one") == 0
    disk_engine.restart(tmp_path / "disk")
    assert cached("another") == 0
    assert cached("one") == 640


class Kept(list[Any]):
    """Events that the engine takes, too."""

    def clear(self) -> None:
        """Keep them."""


def test_what_comes_and_goes_on_disk_is_published(disk_engine: DiskEngine, tmp_path: Path) -> None:
    from vllm.v1.kv_offload.base import Medium  # noqa: PLC0415 - takes seconds

    disk_engine.restart(tmp_path / "disk", MIB + 30 * CHUNK_BYTES)
    manager = disk_engine.connector._manager
    manager._events = Kept()
    try:
        for ids in PROMPTS:
            disk_engine.ask([ids])
            disk_engine.settle()
        events = [event for event in manager._events if event.medium is Medium.STORAGE]
    finally:
        manager._events = None
    stored = {key for event in events if not event.removed for key in event.keys}
    removed = {key for event in events if event.removed for key in event.keys}
    index = disk_engine.disk._store
    assert index is not None
    slots, keys = index.index.rows(0, index.shape.slots)
    assert len(slots)
    assert removed
    assert {key.tobytes() for key in keys} == stored - removed


def test_a_file_in_the_folders_place_stops_the_engine(disk_engine: DiskEngine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    disk_engine.leave()
    with pytest.raises(Exception, match=r"^disk_path: .*file is a file; name a folder$"):
        disk_engine.enter(tmp_path / "file")
    with pytest.raises(Exception, match=r"^disk_capacity_bytes: 1.0 MiB do not hold one chunk"):
        disk_engine.enter(tmp_path / "small", MIB)
    store = Store.open(chunks_request(disk_engine, tmp_path / "taken"))
    with pytest.raises(
        Exception, match=r"^disk_path: .* is in use by a test; give every engine a folder of its own$"
    ):
        disk_engine.enter(tmp_path / "taken")
    store.close()
    disk_engine.enter(tmp_path / "taken")


def chunks_request(engine: DiskEngine, path: Path) -> StoreRequest:
    return StoreRequest(path, 3 * MIB, CHUNK_BYTES, 36, engine.fingerprint, direct=True, holder="a test")


# ---- a warm start ----


def test_prompts_of_before_a_restart_are_answered_from_memory(
    disk_engine: DiskEngine, known: Path, cold: list[list[int]], tmp_path: Path
) -> None:
    names = [f"vllm:kvtier_{name}_chunks" for name in ("disk_warmed", "cpu_hit", "disk_hit")]
    before = [metric(disk_engine.llm, name) for name in names]
    disk_engine.restart(Path(shutil.copytree(known, tmp_path / "disk")), warm_start_s=60.0)
    assert disk_engine.ask() == (cold, CACHED)
    after = [metric(disk_engine.llm, name) for name in names]
    assert [now - then for now, then in zip(after, before, strict=True)] == [39, 39, 0]
