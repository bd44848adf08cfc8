"""What requests wait for while a tier grows beside their engine: latencies while it does, and after."""

import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from kvtier_connector.bench.engine import bench_engine
from kvtier_connector.bench.llm import make_llm
from kvtier_connector.config import GIB, ConnectorConfig, Policy, kv_transfer_config
from kvtier_connector.errors import ConnectorError

_TIER: Final = ConnectorConfig(cpu_capacity_bytes=2 * GIB, hugepages=Policy.OFF)
"""On ordinary pages, which take longest."""
_PROMPT_TOKENS: Final = 32
_OUTPUT_TOKENS: Final = 1
_LIVES: Final = 3
_GROWING: Final = "vllm:kvtier_cpu_growing"
_LONGEST_S: Final = 300.0


def bench_growth(model: Path, *, log: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Ask an engine one short prompt after another from its start on, and as many when its tier has grown.

    Args:
        model: the model's folder.
        log: file for the engine's output.
        say: is told how far it is.

    Returns:
        Seconds of a request while the tier grew and after: median, 99th percentile and longest, of all lives.
    """
    settings = {
        "model": str(model),
        "max_model_len": 1024,
        "kv_transfer_config": kv_transfer_config(_TIER),
        "disable_log_stats": False,
    }
    growing, grown, took = list[float](), list[float](), list[float]()
    for life in range(_LIVES):
        with bench_engine(settings, log=log, module=__name__) as engine:
            found = engine.exchange({}) or {}
        growing += found["growing"]
        grown += found["grown"]
        took.append(found["took_s"])
        say(f"growth: life {life + 1} of {_LIVES}: {len(found['growing'])} requests, {took[-1]:.1f} s")
    return {
        "gib": _TIER.cpu_capacity_bytes / GIB,
        "lives": _LIVES,
        "grew_s": took,
        "requests": len(growing),
        **_figures("while_growing", growing),
        **_figures("grown", grown),
        "p99_ratio": _p99(growing) / _p99(grown),
    }


def _figures(name: str, seconds: Sequence[float]) -> dict[str, float]:
    return {f"{name}_s": median(seconds), f"{name}_p99_s": _p99(seconds), f"{name}_longest_s": max(seconds)}


def _p99(seconds: Sequence[float]) -> float:
    return quantiles(seconds, n=100, method="inclusive")[-1]


def _serve(answers: int, settings: dict[str, Any], arguments: Sequence[str]) -> None:
    from vllm import SamplingParams  # noqa: PLC0415 - only the child needs it

    llm = make_llm(settings, arguments, {"enforce_eager": True})
    how = SamplingParams(temperature=0, max_tokens=_OUTPUT_TOKENS, ignore_eos=True, detokenize=False)
    numbers = random.Random(0)  # noqa: S311 - not for secrets

    def ask() -> float:
        prompt = [numbers.randrange(10, 16000) for _ in range(_PROMPT_TOKENS)]
        begun_s = time.perf_counter()
        llm.generate([{"prompt_token_ids": prompt}], how, use_tqdm=False)
        return time.perf_counter() - begun_s

    def is_growing() -> bool:
        return any(each.value for each in llm.get_metrics() if each.name == _GROWING)

    with os.fdopen(answers, "w", buffering=1) as pipe:
        pipe.write("null\n")
        sys.stdin.readline()
        begun_s, growing = time.monotonic(), [ask()]
        while is_growing():
            growing.append(ask())
            if time.monotonic() - begun_s > _LONGEST_S:
                raise ConnectorError(f"the tier still grows after {_LONGEST_S:.0f} s")
        took_s = time.monotonic() - begun_s
        found = {"took_s": took_s, "growing": growing, "grown": [ask() for _ in growing]}
        pipe.write(json.dumps(found) + "\n")
        sys.stdin.readline()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3]))
