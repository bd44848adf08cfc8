"""An engine under load for long: memory, open files and the disk stay where they are, and the tokens right.

`KVTIER_SOAK_MINUTES` says for how long. What is flat is the memory of the engine core, where indexes and disk
tier live. vLLM grows without a connector, too: its CPU worker by 0.4 MiB a prompt of another shape, its
engine core by 0.3 to 0.7 KiB a prompt.
"""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.engine.connector.disk_engine import tier
from tests.engine.connector.prompts import SMALL_DEVICE, answers, metric, prompt, tokens_of
from tests.shared.disk_usage import taken_bytes

from kvtier_connector.config import MIB, kv_transfer_config

# What vLLM and PyTorch warn of is not ours.
pytestmark = [pytest.mark.engine, pytest.mark.long, pytest.mark.filterwarnings("ignore")]

MINUTES = float(os.environ.get("KVTIER_SOAK_MINUTES", "1"))
CAPACITY_BYTES = 6 * MIB
MOST_GROWTH_BYTES = 24 * MIB
"""Of the engine core, once it is warm: more than the allocator's noise, less than a page for each prompt."""
SETTLED = 0.25


def state() -> tuple[int, int]:
    """Return the engine core's resident bytes, and how many files all processes of the engine have open."""
    engine = psutil.Process().children(recursive=True)
    (core,) = (each for each in engine if "EngineCore" in each.name())
    return core.memory_info().rss, sum(each.num_fds() for each in engine)


@pytest.mark.timeout(MINUTES * 60 + 600)
def test_it_runs_on_and_on(engine: Callable[..., Any], tmp_path: Path) -> None:
    chance = random.Random(1)  # noqa: S311 - not for secrets
    pool = [prompt(chance.randrange(40, 700), seed) for seed in range(60)]
    with engine(**SMALL_DEVICE, enable_prefix_caching=False) as llm:
        cold = tokens_of([answers(llm, [ids])[0] for ids in pool])
    transfer = kv_transfer_config(tier(tmp_path / "disk", CAPACITY_BYTES))
    with engine(transfer, processes=True, **SMALL_DEVICE) as llm:
        start = time.monotonic()
        settled: tuple[int, int] | None = None
        asked = 0
        while (now := time.monotonic() - start) < MINUTES * 60:
            # Favourites, and others between: chunks come from everywhere and are evicted everywhere. A prompt
            # that is alone may be computed while it is still being read.
            together = chance.choice((1, 4))
            picked = [min(int(chance.expovariate(0.08)), len(pool) - 1) for _ in range(together)]
            assert tokens_of(answers(llm, [pool[each] for each in picked])) == [cold[each] for each in picked]
            asked += len(picked)
            assert taken_bytes(tmp_path / "disk") <= CAPACITY_BYTES
            if settled is None and now > MINUTES * 60 * SETTLED:
                settled = state()
        assert settled
        rss_bytes, descriptors = state()
        counts = {
            name: metric(llm, f"vllm:kvtier_{name}_chunks")
            for name in ("cpu_hit", "cpu_evicted", "disk_hit", "disk_evicted", "disk_corrupt", "disk_failed")
        }
    print(  # noqa: T201 - figures, seen with -s
        f"{MINUTES} minutes, {asked} prompts, memory {(rss_bytes - settled[0]) / MIB:+.1f} MiB, "
        f"descriptors {descriptors - settled[1]:+d}, {counts}"
    )
    assert rss_bytes - settled[0] < MOST_GROWTH_BYTES
    assert descriptors <= settled[1]
    assert counts["disk_hit"] > 0
    assert counts["disk_evicted"] > 0
    assert counts["cpu_evicted"] > 0
    assert counts["disk_corrupt"] == counts["disk_failed"] == 0
