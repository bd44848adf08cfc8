"""Time to first token from the tier in memory, beside a device hit and a cold prompt."""

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

from kvtier_connector.bench.engines.engine import Answer, Ask, bench_engine
from kvtier_connector.bench.engines.given import NOTHING_GIVEN, Given
from kvtier_connector.config import GIB, ConnectorConfig, kv_transfer_config

TIER: Final = ConnectorConfig(cpu_capacity_bytes=GIB)
HITS_PER_PROMPT: Final = 3


def bench_ttft(  # noqa: PLR0913 - what a run is made of
    model: Path,
    *,
    prompt_tokens: int,
    repeats: int,
    log: Path,
    say: Callable[[str], None],
    given: Given = NOTHING_GIVEN,
) -> dict[str, Any]:
    """Measure time to first token cold, from the device's cache and from the CPU tier, in one engine.

    Args:
        model: the model's folder.
        prompt_tokens: length of the prompts; each repeat has a new one.
        repeats: number of prompts.
        log: file for the engine's output.
        say: is told how far it is.
        given: arguments for the engine; a tier among them stands for that of 1 GiB.
    """
    found: dict[str, list[Answer]] = {"cold": [], "device_hit": [], "cpu_tier": []}
    equal = True
    settings = {
        "model": str(model),
        "max_model_len": prompt_tokens + 64,
        "kv_transfer_config": given.transfer or kv_transfer_config(TIER),
    }
    with bench_engine(settings, log=log, given=given) as engine:
        engine.run(Ask(seed=-1, prompt_tokens=256))
        for seed in range(repeats):
            cold = engine.run(Ask(seed, prompt_tokens, forget=True))
            found["cold"].append(cold)
            for _ in range(HITS_PER_PROMPT):
                hits = engine.run(Ask(seed, prompt_tokens)), engine.run(Ask(seed, prompt_tokens, forget=True))
                for name, answer in zip(("device_hit", "cpu_tier"), hits, strict=True):
                    found[name].append(answer)
                # Not with the cold answer: in bfloat16 a device hit itself may differ from that by rounding.
                equal &= hits[0].tokens == hits[1].tokens
            lasting = (f"{name} {answers[-1].seconds:.3f} s" for name, answers in found.items())
            say(f"ttft: prompt {seed + 1} of {repeats}: {', '.join(lasting)}")
    medians = {name: median(answer.seconds for answer in answers) for name, answers in found.items()}
    return {
        "prompt_tokens": prompt_tokens,
        "repeats": repeats,
        "cached_tokens": {name: min(answer.cached for answer in answers) for name, answers in found.items()},
        **{f"{name}_s": value for name, value in medians.items()},
        "spread_s": {
            name: [min(answer.seconds for answer in answers), max(answer.seconds for answer in answers)]
            for name, answers in found.items()
        },
        "over_device_hit": medians["cpu_tier"] / medians["device_hit"],
        "speedup": medians["cold"] / medians["cpu_tier"],
        "outputs_equal": equal,
    }
