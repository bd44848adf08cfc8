"""Our disk tier behind vLLM's own CPU tier, through vLLM's own tiering manager; no engine is started."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from pickle import PickleBuffer
from typing import Any

import pytest
from tests.engine.connector.prompts import answers, metric, prompt, tokens_of
from tests.engine.connector.secondary.tiering import (
    ENTRY,
    KEYS,
    MOST_WRITES,
    ROW_BYTES,
    Start,
    Unsure,
    chunks,
    config,
    content,
    start,
    stored,
    transfers,
    view,
)

from kvtier_connector.config import MIB

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
__all__ = ["start"]  # a fixture


def test_what_was_stored_comes_back_byte_for_byte(start: Start) -> None:
    from vllm.v1.metrics.cache_hit_source import CacheHitSource  # noqa: PLC0415 - takes seconds

    tiering = start()
    keys = stored(tiering)
    request = tiering.begin_load(keys)
    tiering.finish()
    tiering.check(keys, request)
    assert {tiering.manager.get_load_source(key, request) for key in keys} == {CacheHitSource.DISK}
    told = tiering.metrics()
    expected = {
        "hit_chunks": KEYS,
        "load_bytes": KEYS * ROW_BYTES,
        "store_bytes": KEYS * ROW_BYTES,
        "used_bytes": KEYS * ROW_BYTES,
        "cached_tokens": KEYS * 16,
        "degraded": 0,
        "corrupt_chunks": 0,
        "dropped_chunks": 0,
    }
    assert {name: told[name] for name in expected} == expected


def test_it_is_warm_after_a_restart(start: Start) -> None:
    keys = stored(start())
    assert start().load(keys) == keys


@pytest.mark.parametrize("hash_bytes", [16, 32])
def test_keys_of_both_of_vllms_lengths(start: Start, hash_bytes: int) -> None:
    keys = chunks(KEYS, hash_bytes=hash_bytes)
    start().store(keys)
    assert start().load(keys) == keys


def test_what_was_stored_already_is_not_written_again(start: Start) -> None:
    tiering = start()
    keys = stored(tiering)
    tiering.store(keys)
    assert tiering.metrics()["store_bytes"] == KEYS * ROW_BYTES


def test_more_than_the_disk_takes_at_a_time_is_dropped(start: Start) -> None:
    tiering = start()
    Unsure.under(tiering.tier).hangs = True
    tiering.begin_store(chunks(MOST_WRITES + 3))
    assert tiering.metrics()["dropped_chunks"] == 3


def test_the_bound_on_the_disk_holds_and_removals_are_told(start: Start) -> None:
    tiering = start(capacity_bytes=MIB + 20 * (ROW_BYTES + 512))
    room = tiering.tier._tier.slots
    assert 15 < room <= 10 + MOST_WRITES
    first, second, last = chunks(10), chunks(room - 10, first=10), chunks(5, first=100)
    for keys in (first, second, last):
        tiering.store(keys)
        tiering.reset()
    events = list(tiering.tier.take_events())
    assert [key for event in events if event.removed for key in event.keys] == first[
        :-6:-1
    ]  # tails before roots
    added = {key for event in events if not event.removed for key in event.keys}
    assert added == {*first, *second, *last}
    assert tiering.load(first + second + last) == first[:5] + second + last
    assert tiering.metrics()["evicted_chunks"] == 5


def test_what_is_touched_stays_and_what_is_being_written_is_waited_for(start: Start) -> None:
    from vllm.v1.kv_offload.base import LookupResult, ReqContext  # noqa: PLC0415 - takes seconds

    tiering = start(capacity_bytes=MIB + 8 * (ROW_BYTES + 512))
    tier, request = tiering.tier, ReqContext("a")
    room = tier._tier.slots
    kept, others, new = chunks(1), chunks(room - 1, first=1), chunks(2, first=100)
    tiering.store(kept)
    tiering.store(others)
    tier.touch(kept, request)
    disk = Unsure.under(tier)
    disk.hangs = True
    tiering.begin_store(new)
    assert [tier.lookup(key, request) for key in new] == [LookupResult.RETRY] * 2
    disk.hangs = False
    tiering.finish()
    assert {tier.lookup(key, request) for key in kept + new} == {LookupResult.HIT}
    assert tier.lookup(others[-1], request) is LookupResult.MISS


def test_events_only_where_vllm_publishes_them(start: Start) -> None:
    tiering = start(change=lambda it: replace(it, enable_kv_cache_events=False))
    stored(tiering)
    assert list(tiering.tier.take_events()) == []


CHANGES: dict[str, Callable[[Any], Any]] = {
    "model": lambda it: replace(it, model=replace(it.model, name="other")),
    "KV dtype": lambda it: replace(it, model=replace(it.model, dtype="fp8")),
    "KV layout": lambda it: replace(it, kv_cache_layout="BLHNC"),
    "canonical layout": lambda it: replace(it, canonical_layout=True),
    "parallel": lambda it: replace(it, parallel=replace(it.parallel, pp_size=2)),
    "agnostic": lambda it: replace(it, parallel=replace(it.parallel, is_parallelism_agnostic=True)),
    "layers": lambda it: replace(it, groups=(replace(it.groups[0], layer_names=("other",)),)),
    "block": lambda it: replace(it, groups=(replace(it.groups[0], tokens_per_block=32),)),
    "hash": lambda it: replace(it, cache=replace(it.cache, tokens_per_hash=32)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_another_meaning_is_another_namespace(start: Start, what: str) -> None:
    keys = stored(start())
    assert start(change=CHANGES[what]).load(keys) == []


def test_another_namespace_has_other_chunks(start: Start) -> None:
    keys = stored(start(namespace="a"))
    assert start(namespace="b").load(keys) == []


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_changed_weights_have_other_chunks(start: Start, tmp_path: Path, file: str) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.safetensors").write_bytes(b"weights")
    (model / "config.json").write_text("{}")
    keys = stored(start(model=str(model), namespace=""))
    assert start(model=str(model), namespace="").load(keys) == keys
    (model / file).write_bytes(b"others")
    assert start(model=str(model), namespace="").load(keys) == []


@pytest.mark.parametrize("damaged", [0, 5, KEYS - 1])
def test_a_damaged_chunk_is_a_miss_and_the_others_are_kept(
    start: Start, tmp_path: Path, damaged: int
) -> None:
    tiering = start()
    keys = stored(tiering)
    place = tiering.tier._tier._store.index.pin([keys[damaged]])[0]
    tiering.tier._tier._store.index.unpin([keys[damaged]])
    [segment] = (tmp_path / "disk").glob("*/blocks-000000")
    with segment.open("r+b") as file:
        file.seek(place * ROW_BYTES + 77)
        byte = file.read(1)[0]
        file.seek(place * ROW_BYTES + 77)
        file.write(bytes([byte ^ 1]))
        os.fsync(file.fileno())
    list(tiering.tier.take_events())
    others = keys[:damaged] + keys[damaged + 1 :]
    assert tiering.load(keys) == others
    assert tiering.metrics()["corrupt_chunks"] == 1
    assert [event.keys for event in tiering.tier.take_events() if event.removed] == [[keys[damaged]]]
    tiering.store([keys[damaged]])  # it heals
    tiering.reset()
    assert tiering.load(keys) == keys


def test_rows_of_any_length(tmp_path: Path) -> None:
    import numpy as np  # noqa: PLC0415 - as above
    from vllm.v1.kv_offload.base import LookupResult, ReqContext  # noqa: PLC0415 - takes seconds
    from vllm.v1.kv_offload.tiering.base import TransferJob  # noqa: PLC0415 - as above
    from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory  # noqa: PLC0415 - as above
    from vllm.v1.kv_offload.tiering.spec import TieringOffloadingSpec  # noqa: PLC0415 - as above

    memory = view(8, 5001)
    settings = config(tmp_path)
    [entry] = settings.extra_config["secondary_tiers"]
    spec = TieringOffloadingSpec(settings)
    tier = SecondaryTierFactory.create_secondary_tier(entry, memory, spec)
    [key], request = chunks(1), ReqContext("a")
    flat = memory.cast("B")
    flat[5001:10002] = content(key, 5001)

    def run(submit: Callable[[Any], None], row: int, *, loads: bool) -> Any:  # noqa: ANN401 - vLLM has no types
        submit(TransferJob(int(loads), [key], np.array([row]), loads, request))
        tier.drain_jobs()
        [result] = tier.get_finished_jobs()
        return result

    assert run(tier.submit_store, 1, loads=False).success
    assert tier.lookup(key, request) is LookupResult.HIT
    assert run(tier.submit_load, 6, loads=True).success
    assert bytes(flat[6 * 5001 : 7 * 5001]) == content(key, 5001)
    assert not any(flat[:5001]) and not any(flat[7 * 5001 :])  # noqa: PT018 - one thing
    tier.shutdown()


def test_memory_in_use_is_taken_back_when_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    from kvtier_connector.vllm.secondary.jobs import LentMemory  # noqa: PLC0415 - takes seconds

    memory = LentMemory(view(4, 100))
    [lent] = memory.lend(2)
    used = PickleBuffer(lent)
    monkeypatch.setattr("kvtier_connector.vllm.secondary.jobs.time.sleep", lambda _: used.release())
    memory.take_back(2)
    with pytest.raises(ValueError, match="released"):
        lent[0]


def test_its_metrics_are_registered() -> None:
    from vllm.v1.kv_offload.tiering.spec import TieringOffloadingSpec  # noqa: PLC0415 - takes seconds

    from kvtier_connector.vllm.metrics.disk_tier import DEFINITIONS  # noqa: PLC0415 - as above

    extra = {"cpu_bytes_to_use": 1, "secondary_tiers": [ENTRY]}
    assert DEFINITIONS.keys() <= TieringOffloadingSpec.build_metric_definitions(extra).keys()


@pytest.fixture
def transfer(tmp_path: Path) -> Iterator[Callable[[str], dict[str, Any]]]:
    with transfers(ENTRY | {"path": str(tmp_path / "disk"), "capacity_bytes": 8 * MIB}) as of:
        yield of


def test_an_engine_with_vllms_own_tiering_is_warm_after_a_restart(
    engine: Callable[..., Any], model_folder: Callable[..., Path], transfer: Callable[[str], dict[str, Any]]
) -> None:
    model = model_folder()
    asked = [prompt(length) for length in (65, 200, 333)]
    with engine(transfer("cold"), model=model) as llm:
        cold = [answers(llm, [ids])[0] for ids in asked]
    assert [cached for _, cached in cold] == [0, 0, 0]
    with engine(transfer("warm"), model=model) as llm:
        warm = [answers(llm, [ids])[0] for ids in asked]
        assert metric(llm, "vllm:kvtier_disk_hit_chunks") == 2 + 6 + 10
        assert metric(llm, "vllm:kvtier_disk_corrupt_chunks") == 0
    assert tokens_of(warm) == tokens_of(cold)
    assert [cached for _, cached in warm] == [64, 192, 320]
