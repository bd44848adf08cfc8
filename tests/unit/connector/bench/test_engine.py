"""The environment of a benchmark's engine, and how its end is waited for."""

import os
import subprocess
import sys
import time

import pytest

from kvtier_connector.bench import engine
from kvtier_connector.bench.engine import environment
from kvtier_connector.bench.given import NOTHING_GIVEN, Given

SPACE, THREADS = "VLLM_CPU_KVCACHE_SPACE", "VLLM_CPU_OMP_THREADS_BIND"


def test_a_cpu_s_cache_is_a_gib_unless_its_size_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SPACE, "7")
    assert environment({}, NOTHING_GIVEN, "")[SPACE] == "1"
    # Not empty either, which vLLM cannot read as a number.
    assert SPACE not in environment({"kv_cache_memory_bytes": 1}, NOTHING_GIVEN, "")
    assert SPACE not in environment({}, Given(arguments=("--kv-cache-memory-bytes", "1")), "")


def test_threads_are_bound_as_asked_as_the_pod_says_or_to_every_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(THREADS, raising=False)
    every = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    assert environment({}, NOTHING_GIVEN, "")[THREADS] == every
    monkeypatch.setenv(THREADS, "nobind")
    assert environment({}, NOTHING_GIVEN, "")[THREADS] == "nobind"
    assert environment({}, NOTHING_GIVEN, "3")[THREADS] == "3"


def python(code: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, text=True)  # noqa: S603 - ours


def test_the_end_is_that_of_its_children_too() -> None:
    child = "import time; time.sleep(1)"
    parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}]); sys.stdin.read()"
    process = python(parent)
    until = time.monotonic() + 30
    while not (family := engine._children(process.pid)) and time.monotonic() < until:
        time.sleep(0.01)
    assert family
    engine._end(process)
    assert process.returncode == 0
    assert not any(map(engine._runs, family))


def test_who_has_ended_already_has_no_children() -> None:
    process = python("")
    process.wait()
    assert engine._children(process.pid) == []
    engine._end(process)
