"""What vLLM 0.33 asks of a connector, and 0.32 does not."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engine.connector.disk_engine import tier
from tests.engine.connector.prompts import PROMPTS, SMALL_DEVICE, answers, metric, overwrite

from kvtier_connector.config import MIB, kv_transfer_config

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

_LESS_THAN_PROMPTS = MIB
_MOST_ROUNDS = 20
"""The disk is written beside the engine, later on a busy machine."""
_WITHOUT_LOCK = {"config_info", "shutdown"}  # as vLLM asks itself


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the manager a lock, and list the methods that were called by who did not hold it."""
    from kvtier_connector.vllm.offloading.manager import KVTierManager  # noqa: PLC0415 - takes seconds

    lock, found = threading.Lock(), list[str]()
    monkeypatch.setattr(KVTierManager, "lock", lock)  # who holds it and asks for it again waits for ever
    for name, method in list(vars(KVTierManager).items()):
        if callable(method) and not name.startswith("_") and name not in _WITHOUT_LOCK:
            monkeypatch.setattr(KVTierManager, name, _watched(method, lock, found))
    return found


def _watched(method: Callable[..., Any], lock: threading.Lock, found: list[str]) -> Callable[..., Any]:
    def call(*arguments: object, **settings: object) -> object:
        if not lock.locked():
            found.append(method.__name__)
        return method(*arguments, **settings)

    return call


@pytest.mark.timeout(300)
def test_who_calls_the_manager_holds_its_lock(
    engine: Callable[..., Any], disk_pays: set[float], outside: list[str], tmp_path: Path
) -> None:
    del disk_pays
    settings = replace(tier(tmp_path), cpu_capacity_bytes=_LESS_THAN_PROMPTS)
    with engine(kv_transfer_config(settings), **SMALL_DEVICE) as llm:
        outside.clear()
        for _ in range(_MOST_ROUNDS):
            for ids in PROMPTS:
                answers(llm, [ids])
            overwrite(llm)
            if metric(llm, "vllm:kvtier_disk_hit_chunks") > 0:
                break
        answers(llm, PROMPTS)
        assert metric(llm, "vllm:kvtier_disk_hit_chunks") > 0, "nothing came from disk"
        assert llm.reset_prefix_cache(reset_connector=True)
        answers(llm, PROMPTS)
    assert outside == []


def test_what_stays_as_it_is_is_told_as_labels(engine: Callable[..., Any], tmp_path: Path) -> None:
    with engine(kv_transfer_config(tier(tmp_path)), **SMALL_DEVICE) as llm:
        answers(llm, PROMPTS[:2])
        (found,) = [metric for metric in llm.get_metrics() if metric.name == "vllm:kv_offload_config_info"]
    labels = {name: value for name, value in found.labels.items() if name.startswith(("cpu_", "disk_"))}
    assert labels == {
        "cpu_num_chunks": "128",
        "cpu_blocks_per_chunk": "1",
        "cpu_kv_cache_size_bytes": str(4 * MIB),
        "cpu_kv_cache_size_tokens": "4096",
        "cpu_memlock": "Prefer",
        "cpu_hugepages": "Never",
        "disk_size_bytes": str(3 * MIB),
    }


def test_an_engine_that_wakes_up_has_the_tiers_that_it_had(
    engine: Callable[..., Any], tmp_path: Path
) -> None:
    with engine(kv_transfer_config(tier(tmp_path)), **SMALL_DEVICE) as llm:
        core = llm.llm_engine.engine_core.engine_core
        first = answers(llm, [PROMPTS[4]])[0][0]
        manager = core.scheduler.connector._manager
        behind, index = manager.behind, manager._index
        core._set_kv_connector_handshake_metadata()  # as EngineCore.wake_up does
        assert (manager.behind, manager._index) == (behind, index)
        overwrite(llm)
        assert answers(llm, [PROMPTS[4]])[0] == (first, 320)
