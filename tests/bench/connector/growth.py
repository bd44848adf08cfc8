"""What requests wait for while a tier grows beside their engine: latencies while it does, and after."""

import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from statistics import median, quantiles
from typing import Any, Final

from kvtier_common.metrics import cpu_tier
from kvtier_connector.bench.engine import bench_engine, serve
from kvtier_connector.bench.measure import Row, Run
from kvtier_connector.bench.vllm_arguments import make_llm
from kvtier_connector.config import GIB, ConnectorConfig, Policy, kv_transfer_config
from kvtier_connector.errors import ConnectorError

_TIER: Final = ConnectorConfig(cpu_capacity_bytes=2 * GIB, hugepages=Policy.NEVER)
"""On ordinary pages, which take longest."""
_PROMPT_TOKENS: Final = 32
_OUTPUT_TOKENS: Final = 1
_LIVES: Final = 3
_LONGEST_S: Final = 300.0


def measure(run: Run) -> dict[str, Any]:
    """Ask an engine one short prompt after another from its start on, and as many when its tier has grown.

    Returns:
        Seconds of a request while the tier grew and after: median, 99th percentile and longest, of all lives.
    """
    settings = {
        "model": str(run.weights()),
        "max_model_len": 1024,
        "kv_transfer_config": kv_transfer_config(_TIER),
        "disable_log_stats": False,
    }
    growing, grown, took = list[float](), list[float](), list[float]()
    for life in range(_LIVES):
        with bench_engine(settings, log=run.log("growth"), module=__name__) as engine:
            found = engine.exchange({})
        growing += found["growing"]
        grown += found["grown"]
        took.append(found["took_s"])
        run.say(f"growth: life {life + 1} of {_LIVES}: {len(found['growing'])} requests, {took[-1]:.1f} s")
    return {
        "gib": _TIER.cpu_capacity_bytes / GIB,
        "lives": _LIVES,
        "grew_s": took,
        "requests": len(growing),
        **_figures("while_growing", growing),
        **_figures("grown", grown),
        "p99_ratio": _p99(growing) / _p99(grown),
    }


def rows(growth: dict[str, Any]) -> Iterator[Row]:
    """Return rows of what `measure` returns."""
    for what, name in (("median", "s"), ("99th percentile", "p99_s"), ("longest", "longest_s")):
        yield (
            f"a short request while {growth['gib']:g} GiB are taken and locked beside it, {what}, ms",
            f"{1000 * growth[f'while_growing_{name}']:.1f}",
            f"afterwards {1000 * growth[f'grown_{name}']:.1f}",
            "",
        )


def _figures(name: str, seconds: Sequence[float]) -> dict[str, float]:
    return {f"{name}_s": median(seconds), f"{name}_p99_s": _p99(seconds), f"{name}_longest_s": max(seconds)}


def _p99(seconds: Sequence[float]) -> float:
    return quantiles(seconds, n=100, method="inclusive")[-1]


def main(arguments: Sequence[str]) -> None:
    """Serve one engine, as `bench_engine` asks it.

    Raises:
        ConnectorError: the tier does not come to an end of growing.
    """
    from vllm import SamplingParams  # noqa: PLC0415 - only the child needs it

    answers, settings, given = int(arguments[0]), json.loads(arguments[1]), json.loads(arguments[2])
    llm = make_llm(settings, given, {"enforce_eager": True})
    how = SamplingParams(temperature=0, max_tokens=_OUTPUT_TOKENS, ignore_eos=True, detokenize=False)
    numbers = random.Random(0)  # noqa: S311 - not for secrets

    def ask() -> float:
        prompt = [numbers.randrange(10, 16000) for _ in range(_PROMPT_TOKENS)]
        begun_s = time.perf_counter()
        llm.generate([{"prompt_token_ids": prompt}], how, use_tqdm=False)
        return time.perf_counter() - begun_s

    def is_growing() -> bool:
        return any(metric.value for metric in llm.get_metrics() if metric.name == cpu_tier.GROWING)

    def watched(_question: object) -> dict[str, Any]:
        begun_s, growing = time.monotonic(), [ask()]
        while is_growing():
            growing.append(ask())
            if time.monotonic() - begun_s > _LONGEST_S:
                raise ConnectorError(f"the tier still grows after {_LONGEST_S:.0f} s")
        took_s = time.monotonic() - begun_s
        return {"took_s": took_s, "growing": growing, "grown": [ask() for _ in growing]}

    serve(answers, watched)


if __name__ == "__main__":
    main(sys.argv[1:])
