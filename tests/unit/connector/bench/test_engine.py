"""The environment of a benchmark's engine."""

import os

import pytest

from kvtier_connector.bench.engine import environment, prompt
from kvtier_connector.bench.vllm_arguments import NO_SERVE_OPTIONS, ServeOptions

SPACE, THREADS = "VLLM_CPU_KVCACHE_SPACE", "VLLM_CPU_OMP_THREADS_BIND"


def test_a_cpu_s_cache_is_a_gib_unless_its_size_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SPACE, "7")
    assert environment({}, NO_SERVE_OPTIONS, "")[SPACE] == "1"
    # Not empty either, which vLLM cannot read as a number.
    assert SPACE not in environment({"kv_cache_memory_bytes": 1}, NO_SERVE_OPTIONS, "")
    assert SPACE not in environment({}, ServeOptions(arguments=("--kv-cache-memory-bytes", "1")), "")


def test_threads_are_bound_as_asked_as_the_pod_says_or_to_every_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(THREADS, raising=False)
    every = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    assert environment({}, NO_SERVE_OPTIONS, "")[THREADS] == every
    monkeypatch.setenv(THREADS, "nobind")
    assert environment({}, NO_SERVE_OPTIONS, "")[THREADS] == "nobind"
    assert environment({}, NO_SERVE_OPTIONS, "3")[THREADS] == "3"


def test_every_seed_has_a_prompt_of_its_own() -> None:
    assert prompt(1, 40) == prompt(1, 50)[:40]
    assert len({prompt(seed, 1000)[0] for seed in range(-5, 6)}) == 11
