"""What holds for every resource."""

from contextlib import suppress
from typing import Any

import hypothesis.strategies as st
from hypothesis import given
from tests.cases.planning import check_input, plan_sizes, resource

from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.api.spec.gpu import Gpu
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.arguments.batches import STEP
from kvtier_operator.planning.backends.kept_states import RETENTION
from kvtier_operator.planning.checks import CHECKS
from kvtier_operator.planning.observed import Machine, Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.report.explain import explain
from kvtier_operator.planning.report.fields import report
from kvtier_operator.planning.verdict import Outcome

MIB = 1024**2
MODELS = [
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-0.6B",
    "deepseek-ai/DeepSeek-V3",
    "openai/gpt-oss-120b",
    "google/gemma-3-27b-it",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
]
BACKENDS = ["KVTier", "Native", "LMCache", "LMCacheMP"]
VOLUMES = [{"emptyDir": {}}, {"ephemeral": {}}, {"hostPath": {"path": "/mnt"}}]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of `resource`, right and wrong ones."""
    device = draw(st.sampled_from(["gpu", "cpu"]))
    engine: dict[str, Any] = {
        "device": device,
        "tensorParallelSize": draw(st.sampled_from([1, 2, 3, 8, 16])),
        "dataParallelSize": draw(st.sampled_from([1, 2])),
        "blockSize": draw(st.sampled_from([8, 16, 32, 128])),
    }
    if draw(st.booleans()):
        engine["kvCacheMemory"] = f"{draw(st.integers(64, 1 << 20))}Mi"
    elif device == "gpu" and draw(st.booleans()):
        engine |= draw(st.sampled_from([{"gpu": gpu.value} for gpu in Gpu] + [{"gpuMemory": "24Gi"}]))
    if draw(st.booleans()):
        engine["extraArgs"] = draw(
            st.sampled_from([["--enforce-eager"], ["--port", "1"], ["--kv-offloading-size=1"]])
        )
    if draw(st.booleans()):
        engine["resources"] = {"requests": {"memory": f"{draw(st.integers(1, 500))}Gi"}}
    policies = st.sampled_from(["Require", "Prefer", "Never"])
    cpu = {
        "capacity": f"{draw(st.integers(1, 1 << 21))}Mi",
        "hugepages": {"policy": draw(policies)},
        "memlock": {"policy": draw(policies)},
    }
    tiers: dict[str, Any] = {"cpu": cpu}
    if draw(st.booleans()):
        volume = draw(st.sampled_from(VOLUMES))
        tiers["disk"] = {"capacity": f"{draw(st.integers(1, 4096))}Gi", "volume": volume}
    return {
        "model": draw(st.sampled_from(MODELS)),
        "backend": draw(st.sampled_from(BACKENDS)),
        "engine": engine,
        "tiers": tiers,
        "replicas": draw(st.integers(0, 4)),
    }


@st.composite
def machines(draw: st.DrawFn) -> Observed:
    """A cluster, or a machine of some size."""
    sizes = st.none() | st.integers(1, 1 << 42)
    if draw(st.booleans()):
        return Observed()
    return Observed(
        machine=Machine(
            memory_bytes=draw(sizes),
            shm_bytes=draw(sizes),
            free_hugepages={2 * MIB: draw(st.integers(0, 1 << 20))},
            memlock_bytes=draw(sizes),
            disk_free_bytes=draw(sizes),
        )
    )


@given(case=cases())
def test_the_memory_lines_sum_up_to_the_limit(case: dict[str, Any]) -> None:
    _, budget, _ = plan_sizes(resource(**case))
    total = sum(line.bytes for line in budget.memory)
    assert total == parse_bytes(budget.limits["memory"]) == parse_bytes(budget.requests["memory"])
    assert all(line.bytes > 0 and line.what and line.why for line in budget.memory)


@given(case=cases(), more=st.integers(0, 1 << 21))
def test_more_capacity_never_holds_fewer_tokens(case: dict[str, Any], more: int) -> None:
    fewer, _, _ = plan_sizes(resource(**case))
    capacity = parse_bytes(case["tiers"]["cpu"]["capacity"])
    case["tiers"]["cpu"]["capacity"] = str(capacity + more * MIB)
    larger, _, _ = plan_sizes(resource(**case))
    assert larger.cpu.tokens >= fewer.cpu.tokens


@given(case=cases())
def test_tokens_never_take_more_than_the_tier(case: dict[str, Any]) -> None:
    one = check_input(resource(**case))
    ranks, cpu = one.ranks, one.tiers.cpu
    assert cpu.tokens * one.geometry.kv_bytes_per_token <= cpu.bytes_per_rank * ranks
    if one.backend.hugepages is None:
        assert cpu.bytes_per_rank * ranks <= cpu.capacity_bytes or cpu.capacity_bytes < ranks * MIB


@given(case=cases(), observed=machines())
def test_every_check_speaks_and_every_report_is_narrow_and_always_the_same(
    case: dict[str, Any], observed: Observed
) -> None:
    plan, other = (make_plan(resource(**case), observed) for _ in range(2))
    assert plan == other
    text = explain(plan)
    assert text == explain(other)
    assert report(plan) == report(other)
    assert max(len(line) for line in text.splitlines()) <= 100
    assert len(plan.checks) == len(CHECKS)
    for check in plan.checks:
        assert check.message
        assert "\n" not in check.message
        assert check.reason.isalnum()
        if check.outcome is not Outcome.PASS:
            assert check.field.startswith("spec.")
            assert (
                any(sign.isdigit() for sign in check.message) or ";" in check.message or ":" in check.message
            )


NUMBERS = ["--max-loras", "--max-cpu-loras", STEP, RETENTION, "--spec-tokens"]


@given(
    option=st.sampled_from(NUMBERS),
    value=st.one_of(st.integers().map(str), st.integers(10**300, 10**301).map(str), st.text("0123k²٣ _-+.")),
    model=st.sampled_from(["Qwen/Qwen3-Next-80B-A3B-Instruct", "openai/gpt-oss-120b"]),
    backend=st.sampled_from(BACKENDS),
)
def test_any_value_of_a_number_is_planned_with_or_refused(
    option: str, value: str, model: str, backend: str
) -> None:
    words = ["--enable-lora", "--spec-method", "ngram", "--spec-tokens", "2", f"{option}={value}"]
    one = resource(model, backend=backend, engine={"extraArgs": words})
    with suppress(InvalidInputError):
        assert explain(make_plan(one, Observed()))
