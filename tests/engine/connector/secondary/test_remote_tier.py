"""Our remote tier behind vLLM's own CPU tier, before a real server; then between two engines."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.engine.connector.prompts import answers, metric, prompt, tokens_of
from tests.engine.connector.secondary.tiering import (
    ENTRY,
    KEYS,
    ROW_BYTES,
    ROWS,
    Tiering,
    chunks,
    content,
    stored,
    transfers,
    until,
    with_tier,
)
from tests.shared.stores import Store, running

from kvtier_connector.config import MIB
from kvtier_connector.errors import SettingError

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with running("valkey", tmp_path / "store") as store:
        yield store


def entry(store: Store, **settings: object) -> dict[str, object]:
    default = {"url": f"redis://{store.address}", "share": "team", "capacity_bytes": 64 * MIB}
    return ENTRY | {"type": "KVTierRemote", "namespace": "test"} | default | settings


@contextmanager
def started(store: Store, *, waits: bool = True, **settings: Any) -> Iterator[Tiering]:  # noqa: ANN401 - as YAML has them
    tiering = Tiering.start(with_tier(entry(store, **settings)))
    try:
        if waits:
            until(tiering, lambda: not tiering.tier._is_off)
        yield tiering
    finally:
        tiering.manager.shutdown()


def test_what_one_engine_has_stored_another_loads_byte_for_byte(store: Store) -> None:
    from vllm.v1.metrics.cache_hit_source import CacheHitSource  # noqa: PLC0415 - takes seconds

    with started(store) as first, started(store) as second:
        keys = stored(first)
        told = first.metrics()
        assert (told["store_bytes"], told["degraded"]) == (KEYS * ROW_BYTES, 0)
        request = second.begin_load(keys)
        second.finish()
        second.check(keys, request)
        assert {second.manager.get_load_source(key, request) for key in keys} == {
            CacheHitSource.EXTERNAL_UNSPECIFIED
        }
        assert second.metrics()["load_bytes"] == KEYS * ROW_BYTES
        second.reset()
        second.store(keys + chunks(1, first=99))
        assert second.metrics()["store_bytes"] == ROW_BYTES, "what is there is not sent again"
        assert list(second.tier.take_events()) == []


@pytest.mark.parametrize("other", [{"share": "others"}, {"namespace": "other"}])
def test_another_share_or_namespace_has_other_chunks(store: Store, other: dict[str, Any]) -> None:
    with started(store) as first, started(store, **other) as second:
        assert second.load(stored(first)) == []


def test_values_with_a_key(store: Store, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("the key of this share")
    keyed: dict[str, Any] = {"mac_key_path": str(tmp_path / "key")}
    with started(store, **keyed) as first, started(store, **keyed) as second, started(store) as third:
        keys = stored(first)
        assert third.load(keys) == []
        assert second.load(keys) == keys


def test_a_store_that_stops_holds_nobodys_memory_and_nothing_comes_late(store: Store) -> None:
    with started(store) as tiering:
        keys = stored(tiering)
        with store.stopped():
            assert tiering.load(keys) == []
            assert tiering.metrics()["degraded"] == 1
            others = chunks(ROWS, first=100)  # in all of memory, also where the store was to put its chunks
            slots = tiering.begin_store(others)
        until(tiering, lambda: not tiering.tier._is_off)
        assert [bytes(tiering.row(slot)) for slot in slots] == [content(key) for key in others]
        tiering.finish()
        tiering.reset()
        assert tiering.load(keys) == keys
        assert tiering.metrics()["degraded"] == 0


def test_a_store_that_stops_in_the_middle_of_a_load(store: Store) -> None:
    with started(store) as tiering:
        keys = stored(tiering)
        assert tiering.load(keys) == keys
        tiering.reset()
        with store.stopped():
            tiering.begin_load(keys)  # what it was told a moment ago still holds
            assert tiering.tier._tier.loading == KEYS
            tiering.reset()  # waits for the deadline of what is under way
            assert not tiering.manager.has_pending_work()
            slots = tiering.begin_store(chunks(ROWS, first=100))
        until(tiering, lambda: not tiering.tier._is_off)
        assert [bytes(tiering.row(slot)) for slot in slots] == [
            content(key) for key in chunks(ROWS, first=100)
        ]


def test_a_store_that_dies_and_another_that_comes(store: Store, tmp_path: Path) -> None:
    with started(store) as tiering:
        keys = stored(tiering)
        store.process.kill()
        assert tiering.load(keys) == []
        assert tiering.tier._is_off
        tiering.store(chunks(KEYS, first=20))
        tiering.reset()
        with running("valkey", tmp_path / "other", port=store.address.port):
            until(tiering, lambda: not tiering.tier._is_off)
            tiering.store(keys)
            tiering.reset()
            assert tiering.load(keys) == keys
    with started(store, waits=False) as tiering:  # starts without a store, too
        assert tiering.load(keys) == []


def test_what_nobody_thought_of_ends_the_tier_and_not_the_engine(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(store) as tiering:
        keys = stored(tiering)
        assert tiering.load(keys) == keys
        tiering.reset()

        def fail() -> None:
            raise ZeroDivisionError

        with store.stopped():
            tiering.begin_load(keys)
            monkeypatch.setattr(tiering.tier._tier, "poll", fail)
            tiering.finish()
        assert tiering.tier._remote.stop(), "memory is given back once no thread can write to it"
        assert tiering.load(keys) == []
        tiering.store(chunks(KEYS, first=20))
        tiering.reset()
        assert tiering.metrics()["degraded"] == 1


BAD: dict[str, tuple[dict[str, object], str]] = {
    "unknown": ({"path": "/x"}, r"path: unknown setting; known are ca_path, capacity_bytes, connections, "),
    "no choice": ({"break_even": True}, r"break_even: unknown setting"),
    "scheme": ({"url": "s3://bucket"}, r"url: must be SCHEME://HOST:PORT without user and password"),
    "port": ({"url": "redis://a:99999"}, r"url: got 'redis://a:99999', must have a port from 1 to 65535"),
    "text": ({"capacity_bytes": "4Gi"}, r"capacity_bytes: got '4Gi', must be a whole number"),
    "key": ({"mac_key_path": "/nowhere/key"}, r"mac_key_path: /nowhere/key: No such file or directory$"),
    "weights": ({"namespace": ""}, r"namespace: missing; the weights of m cannot be told from others"),
    "name": ({"namespace": 5}, r"namespace: got 5, must be a text$"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings_stop_the_start_in_one_line(case: str) -> None:
    settings, message = BAD[case]
    default = {"url": "redis://cache:6379", "share": "team", "capacity_bytes": MIB, "namespace": "test"}
    with pytest.raises(SettingError, match=rf"^secondary_tiers\[0\]\.{message}") as caught:
        Tiering.start(with_tier(ENTRY | {"type": "KVTierRemote"} | default | settings))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("lacks", ["url", "share", "capacity_bytes"])
def test_what_is_missing_is_named(lacks: str) -> None:
    default: dict[str, object] = {"url": "redis://cache:6379", "share": "team", "capacity_bytes": MIB}
    del default[lacks]
    with pytest.raises(SettingError, match=rf"^secondary_tiers\[0\]\.{lacks}: missing; a remote tier needs"):
        Tiering.start(with_tier(ENTRY | {"type": "KVTierRemote"} | default))


@pytest.fixture
def transfer(store: Store) -> Iterator[Callable[[str], dict[str, Any]]]:
    with transfers(entry(store)) as of:
        yield of


def follow(llm: Any, is_so: Callable[[Any], bool]) -> None:  # noqa: ANN401 - vLLM has no types
    """Do steps until the tier is where a test wants it."""
    core = llm.llm_engine.engine_core.engine_core
    manager = core.scheduler.connector.connector_scheduler.manager
    [tier] = manager.secondary_tiers
    while not is_so(tier):
        tier._tier.wait(0.05)
        tier._poll()


def test_an_engine_with_vllms_own_tiering_is_warm_with_what_another_computed(
    engine: Callable[..., Any],
    model_folder: Callable[..., Path],
    transfer: Callable[[str], dict[str, Any]],
    store: Store,
) -> None:
    model = model_folder()
    asked = [prompt(length) for length in (65, 200, 333)]
    with engine(transfer("cold"), model=model) as llm:
        follow(llm, lambda tier: not tier._is_off)
        cold = [answers(llm, [ids])[0] for ids in asked]
        follow(llm, lambda tier: not tier._tier.is_busy)
    assert [cached for _, cached in cold] == [0, 0, 0]
    with engine(transfer("warm"), model=model) as llm:
        follow(llm, lambda tier: not tier._is_off)
        warm = [answers(llm, [ids])[0] for ids in asked]
        assert metric(llm, "vllm:kvtier_remote_hit_chunks") == 2 + 6 + 10
        assert metric(llm, "vllm:kvtier_remote_corrupt_chunks") == 0
        others = [prompt(length, 5) for length in (90, 250)]
        before = tokens_of([answers(llm, [ids])[0] for ids in others])
    assert tokens_of(warm) == tokens_of(cold)
    assert [cached for _, cached in warm] == [64, 192, 320]
    with engine(transfer("deserted"), model=model) as llm:
        follow(llm, lambda tier: not tier._is_off)
        with store.stopped():
            assert tokens_of(answers(llm, [others[0], asked[0]])) == [before[0], cold[0][0]]
        store.process.kill()
        assert tokens_of(answers(llm, [others[1], *asked[1:]])) == [before[1], *tokens_of(cold[1:])]
