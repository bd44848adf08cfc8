from dataclasses import asdict

import pytest
from tests.bench.picker.pick import time_pick


def test_a_small_pool_is_timed_in_order() -> None:
    timing = time_pick(pods=5, prompt_tokens=500, picks=8, rounds=3)
    assert (timing.pods, timing.prompt_tokens, timing.picks, timing.rounds) == (5, 500, 8, 3)
    assert 0 < timing.pick_p50_ms <= timing.pick_p99_ms
    assert 0 < timing.sent_p50_ms <= timing.sent_p99_ms
    figures = asdict(timing)
    for name in ("pick_p50_ms", "pick_p99_ms", "pick_cpu_p99_ms", "sent_p50_ms", "sent_p99_ms"):
        low, high = figures[f"{name}_spread"]
        assert low <= figures[name] <= high, name


def test_one_pod_is_a_pool() -> None:
    assert time_pick(pods=1, prompt_tokens=100, picks=4, rounds=1).pods == 1


@pytest.mark.parametrize("prompt_tokens", [0, 3])
def test_prompts_shorter_than_a_block(prompt_tokens: int) -> None:
    assert time_pick(pods=2, prompt_tokens=prompt_tokens, picks=4, rounds=1).pick_p50_ms > 0
