"""Checks of the picker."""

from dataclasses import replace
from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import check_input, resource

from kvtier_operator.planning.checks.arguments import reserved_arguments
from kvtier_operator.planning.checks.picker import (
    data_parallel,
    picker_entries,
    picker_gpu_entries,
    picker_memory,
    picker_replicas,
)


def test_llm_d_honours_the_capacities() -> None:
    one = resource(engine={"kvCacheMemory": "20Gi"}, router={"flavor": "llm-d"})
    says(verdict(picker_entries, one), PASS, "Passed", "64 tokens")


def test_gaie_1_5_ignores_them() -> None:
    one = resource(router={"flavor": "gaie", "version": "1.5"})
    says(verdict(picker_entries, one), WARN, "PickerLimits", "lruCapacityPerServer")


def test_a_weight_that_no_scorer_reads_is_said_by_its_field() -> None:
    given = check_input(resource(router={"weights": {"kvCacheUtilization": 7}}))
    result = picker_entries(replace(given, router=replace(given.router, unread=("kv_cache_utilization",))))
    says(
        result,
        WARN,
        "WeightUnread",
        "spec.router.weights.kvCacheUtilization weighs nothing, for llm-d-router",
    )
    assert result.field == "spec.router.weights.kvCacheUtilization"


def test_a_weight_that_nobody_gave_is_not_missed() -> None:
    given = check_input(resource(engine={"kvCacheMemory": "20Gi"}))
    result = picker_entries(replace(given, router=replace(given.router, unread=("kv_cache_utilization",))))
    assert result.outcome == PASS


def test_the_devices_cache_is_not_known() -> None:
    result = verdict(picker_gpu_entries, resource())
    says(result, PASS, "LeftToOperator", "the operator asks the first one", "spec.engine.kvCacheMemory")
    assert result.field == "spec.engine.gpu"


@pytest.mark.parametrize(
    ("spec", "ways", "field"),
    [
        ({}, "set spec.engine.gpu, or spec.engine.kvCacheMemory", "spec.engine.gpu"),
        (
            {"model": "deepseek-ai/DeepSeek-V3"},
            "set spec.engine.gpu with spec.model.weights, or spec.engine.kvCacheMemory",
            "spec.engine.gpu",
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
    assert (result.outcome, result.reason) == (PASS, "LeftToOperator")
    assert result.message.endswith(ways)
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


def test_of_several_pickers_one_serves() -> None:
    says(verdict(picker_replicas, resource()), PASS, "Passed")
    result = verdict(picker_replicas, resource(router={"replicas": 3}))
    says(result, WARN, "StandbyStartsEmpty", "of 3 pickers one serves", "an empty index", "18 s")
    assert result.field == "spec.router.replicas"


def test_the_pickers_memory_holds_a_full_index_and_requests() -> None:
    # 512 MiB, 37,650 entries x 8 engines x 1,280 B and 8 x 48 MiB
    says(verdict(picker_memory, resource()), PASS, "Passed", "1.25 GiB of 1792Mi")
    enough = resource(router={"resources": {"limits": {"memory": "1280Mi"}}})
    says(verdict(picker_memory, enough), PASS, "Passed")


def test_a_limit_below_it_is_said() -> None:
    one = resource(router={"resources": {"limits": {"memory": "512Mi"}}})
    result = verdict(picker_memory, one)
    says(result, WARN, "PickerMemoryShort", "512Mi is less than the 1.25 GiB", "many requests under way")
    assert result.field == "spec.router.resources.limits.memory"


def test_bodies_that_make_it_large_are_said() -> None:
    builtin = {"flavor": "builtin", "maxBodySize": "1Gi"}
    result = verdict(picker_memory, resource(router=builtin))
    says(result, WARN, "PickerMemoryLarge", "bodies of 1Gi", "17920Mi", "spec.router.resources.limits.memory")
    assert result.field == "spec.router.maxBodySize"
    meant = builtin | {"resources": {"limits": {"memory": "18Gi"}}}
    says(verdict(picker_memory, resource(router=meant)), PASS, "Passed")
    says(verdict(picker_memory, resource(router=builtin | {"maxBodySize": "128Mi"})), PASS, "Passed")


def test_one_engine_has_an_address_of_its_own() -> None:
    says(verdict(data_parallel, resource()), PASS, "Passed")


@pytest.mark.parametrize(
    ("flavor", "words"),
    [("llm-d", "first series alone"), ("gaie", "first series alone"), ("builtin", "adds up their queues")],
)
def test_several_engines_are_one_to_a_picker(flavor: str, words: str) -> None:
    one = resource(replicas=2, engine={"dataParallelSize": 4}, router={"flavor": flavor})
    result = verdict(data_parallel, one)
    says(result, WARN, "EnginesBehindOnePort", "4 engines", f"picker {flavor}", words)
    says(result, WARN, "EnginesBehindOnePort", "409,600 tokens", "1 in 4", "102,400 tokens", "replicas to 8")
    assert result.field == "spec.engine.dataParallelSize"


@pytest.mark.parametrize(
    "argument", ["--data-parallel-multi-port-external-lb", "-dpm", "-dpl=2", "--data_parallel_rank"]
)
def test_other_ways_to_lay_out_engines_are_refused(argument: str) -> None:
    one = resource(engine={"dataParallelSize": 4, "extraArgs": [argument]})
    says(verdict(reserved_arguments, one), REJECT, "ReservedArgument", argument.partition("=")[0], "one port")
