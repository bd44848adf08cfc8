"""What one GPU holds of the weights."""

from typing import Final

import pytest
from tests.cases.planning import plan_sizes, resource

MOE: Final = "Qwen/Qwen3-235B-A22B"
BALANCED: Final = ("--enable-expert-parallel", "--enable-eplb", "--eplb-config.num_redundant_experts")


@pytest.mark.parametrize(
    ("words", "device_tokens"),
    [
        ((), 331_584),
        ((*BALANCED, "16"), 184_128),
        ((*BALANCED, "32"), 36_672),
        (("--no-enable-eplb", *BALANCED[2:], "32"), 331_584),
        (("--enable-eplb",), 331_584),
    ],
)
def test_experts_that_are_there_twice_take_the_devices_memory(
    words: tuple[str, ...], device_tokens: int
) -> None:
    """By a public report: 32 copies of 128 experts leave less than one sequence."""
    engine = {"tensorParallelSize": 8, "gpuMemory": "80Gi", "extraArgs": [*words]}
    tiers, _, _ = plan_sizes(resource(MOE, engine=engine))
    assert tiers.gpu is not None
    assert tiers.gpu.tokens == device_tokens
