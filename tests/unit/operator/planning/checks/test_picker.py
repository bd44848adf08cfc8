"""Checks of the picker: picker-entries, picker-gpu-entries, picker-memory, picker-replicas."""

from typing import Any

import pytest
from tests.cases.checks import PASS, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.picker_entries import picker_entries
from kvtier_operator.planning.checks.picker_gpu_entries import picker_gpu_entries
from kvtier_operator.planning.checks.picker_memory import picker_memory
from kvtier_operator.planning.checks.picker_replicas import picker_replicas


def test_llm_d_honours_the_capacities() -> None:
    one = resource(engine={"kvCacheMemory": "20Gi"}, router={"flavor": "llm-d"})
    says(verdict(picker_entries, one), PASS, "Passed", "64 tokens")


def test_gaie_1_5_ignores_them() -> None:
    one = resource(router={"flavor": "gaie", "version": "1.5"})
    says(verdict(picker_entries, one), WARN, "PickerLimits", "lruCapacityPerServer")


def test_the_devices_cache_is_not_known() -> None:
    result = verdict(picker_gpu_entries, resource())
    says(result, WARN, "DeviceCacheUnknown", "spec.engine.kvCacheMemory")
    assert result.field == "spec.engine.gpuMemory"


@pytest.mark.parametrize(
    ("spec", "ways", "field"),
    [
        ({}, "set spec.engine.gpuMemory, or spec.engine.kvCacheMemory", "spec.engine.gpuMemory"),
        (
            {"model": "deepseek-ai/DeepSeek-V3"},
            "set spec.engine.gpuMemory with spec.model.weights, or spec.engine.kvCacheMemory",
            "spec.engine.gpuMemory",
        ),
        (
            {"model": "deepseek-ai/DeepSeek-V3", "engine": {"gpuMemory": "80Gi"}},
            "set spec.model.weights, or spec.engine.kvCacheMemory",
            "spec.model.weights",
        ),
    ],
    ids=str,
)
def test_what_is_missing_to_know_the_devices_cache(spec: dict[str, Any], ways: str, field: str) -> None:
    result = verdict(picker_gpu_entries, resource(**spec))
    says(result, WARN, "DeviceCacheUnknown", f"{ways}, to plan it")
    assert result.field == field


@pytest.mark.parametrize(
    "router",
    [
        {"flavor": "gaie", "version": "1.5.0"},  # its one index stands for the CPU tier
        {"weights": {"gpuPrefix": 0}},
    ],
    ids=str,
)
@pytest.mark.parametrize("engine", [{}, {"kvCacheMemory": "20Gi"}], ids=str)
def test_pickers_without_an_index_of_the_devices_cache(
    router: dict[str, Any], engine: dict[str, Any]
) -> None:
    says(verdict(picker_gpu_entries, resource(router=router, engine=engine)), PASS, "NotAskedFor")


def test_the_devices_cache_is_known() -> None:
    # 20 GiB / 262,144 B = 81,920 tokens = 1,280 entries of 64
    one = resource(engine={"kvCacheMemory": "20Gi"})
    says(verdict(picker_gpu_entries, one), PASS, "Passed", "1,280 entries")


def test_pickers_do_not_share_their_index() -> None:
    says(verdict(picker_replicas, resource()), PASS, "Passed")
    result = verdict(picker_replicas, resource(router={"replicas": 3}))
    says(result, WARN, "IndexDivided", "3 pickers", "1/3")


def test_the_pickers_memory_holds_a_full_index() -> None:
    says(verdict(picker_memory, resource()), PASS, "Passed", "704 MiB of 1408Mi")
    enough = resource(router={"resources": {"limits": {"memory": "704Mi"}}})
    says(verdict(picker_memory, enough), PASS, "Passed")


def test_a_limit_below_it_is_said() -> None:
    one = resource(router={"resources": {"limits": {"memory": "512Mi"}}})
    result = verdict(picker_memory, one)
    says(result, WARN, "PickerMemoryShort", "512Mi is less than the 704 MiB")
    assert result.field == "spec.router.resources.limits.memory"
