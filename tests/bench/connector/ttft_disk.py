"""Time to first token from disk after a restart, beside a device hit and the disk's own speed."""

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.bench.connector.disk.fio import HUGEPAGES_BYTES, Fio, FioMissingError
from tests.bench.connector.disk.work import Work

from kvtier_connector.bench.engine import Answer, Ask, bench_engine
from kvtier_connector.bench.measure import Row, Run
from kvtier_connector.bench.region import reserve_hugepages
from kvtier_connector.config import GIB, ConnectorConfig, kv_transfer_config

_RESTARTS: Final = 3
_HITS_PER_PROMPT: Final = 3
_FIO_BLOCK_BYTES: Final = 512 << 10
"""A chunk of 128 tokens, vLLM's block on a CPU, of the bench's model in bfloat16."""
_FIO_BLOCKS: Final = 1024
_ALLOWED: Final = 1.2
"""How much longer than fio the tier may read."""
_WARM_UP: Final = Ask(seed=-1, prompt_tokens=256)


def measure(run: Run, folder: Path) -> dict[str, Any]:
    """Have one engine store prompts, and the next ones load each from disk and then find it on the device.

    Nothing of it is in the page cache: files are written and read past it (O_DIRECT). Before each prompt,
    from disk or from the device, fio reads blocks of the same size and the engine comes to rest. A prompt
    that follows another at once finds threads that spin and the model in the processor's cache, and is faster
    by that: such hits are measured and printed, too, but the limit is set by like ones.

    Returns:
        Medians in seconds, the bytes loaded, fio's bandwidth, and what the time from disk is limited to; the
        last two are None without fio. `missing` says which huge pages the machine lacked.
    """
    model, prompt_tokens, prompts = run.weights(), run.prompt_tokens, run.repeats
    log = run.log("ttft-disk")
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix="kvtier-bench-") as scratch,
        reserve_hugepages(2 * GIB + HUGEPAGES_BYTES) as missing,
    ):
        tier = ConnectorConfig(
            cpu_capacity_bytes=2 * GIB, disk_path=str(Path(scratch, "tier")), disk_capacity_bytes=2 * GIB
        )
        settings = {
            "model": str(model),
            "max_model_len": prompt_tokens + 64,
            "kv_transfer_config": kv_transfer_config(tier),
        }
        with bench_engine(settings, log=log) as engine:
            engine.run(_WARM_UP)
            cold = list[Answer]()
            for seed in range(prompts):
                cold.append(engine.run(Ask(seed, prompt_tokens)))
                run.say(f"ttft_disk: prompt {seed + 1} of {prompts}: cold {cold[-1].seconds:.2f} s")
            engine.rest()
        fio = _fio(Path(scratch, "fio"))
        gbps = defaultdict[str, list[float]](list)
        from_disk, hits, hits_at_once = list[Answer](), list[Answer](), list[Answer]()
        equal = True
        for restart in range(1, _RESTARTS + 1):
            with bench_engine(settings, log=log) as engine:
                engine.run(Ask(seed=-2, prompt_tokens=256))
                for seed in range(prompts):
                    ask = Ask(seed, prompt_tokens)
                    for answers in (from_disk, *[hits] * _HITS_PER_PROMPT):
                        _read(fio, gbps, seed)
                        engine.rest()
                        answers.append(engine.run(ask))
                        equal &= answers[-1].tokens == from_disk[-1].tokens
                    hits_at_once += (engine.run(ask) for _ in range(_HITS_PER_PROMPT))
            disk_s, hit_s = (
                median(answer.seconds for answer in each) for each in (from_disk[-prompts:], hits)
            )
            run.say(
                f"ttft_disk: restart {restart} of {_RESTARTS}: from disk {disk_s:.3f} s, hit {hit_s:.3f} s"
            )
    cached_tokens = min(answer.cached for answer in from_disk)
    loaded_bytes = cached_tokens * _token_bytes(model)
    hit_s = median(answer.seconds for answer in hits)
    fastest = max(gbps.values(), key=median, default=None)
    bandwidth = median(fastest) if fastest else None
    return {
        "prompt_tokens": prompt_tokens,
        "prompts": prompts,
        "restarts": _RESTARTS,
        "cached_tokens": cached_tokens,
        "loaded_bytes": loaded_bytes,
        "cold_s": median(answer.seconds for answer in cold),
        "device_hit_s": hit_s,
        "device_hit_at_once_s": median(answer.seconds for answer in hits_at_once),
        "disk_s": median(answer.seconds for answer in from_disk),
        "spread_s": {
            "device_hit": _spread(hits),
            "device_hit_at_once": _spread(hits_at_once),
            "disk": _spread(from_disk),
        },
        "fio_gbps": bandwidth,
        "fio_spread_gbps": [min(fastest), max(fastest)] if fastest else None,
        "limit_s": hit_s + _ALLOWED * loaded_bytes / (bandwidth * 1e9) if bandwidth else None,
        "outputs_equal": equal,
        "missing": missing,
    }


def rows(ttft: dict[str, Any]) -> Iterator[Row]:
    """Return rows of what `measure` returns."""
    limit = f"{ttft['limit_s'] * 1e3:.1f} ms" if ttft["limit_s"] else "fio is missing"
    speed = f", fio {ttft['fio_gbps']:.2f} GB/s" if ttft["fio_gbps"] else ""
    hit_ms, at_once_ms = ttft["device_hit_s"] * 1e3, ttft["device_hit_at_once_s"] * 1e3
    yield (
        f"TTFT from disk after a restart, {ttft['prompt_tokens']} tokens",
        f"{ttft['disk_s'] * 1e3:.1f} ms, outputs equal: {ttft['outputs_equal']}",
        f"device hit {hit_ms:.1f} ms ({at_once_ms:.1f} ms at once), cold {ttft['cold_s']:.2f} s{speed}",
        limit,
    )


def _token_bytes(model: Path) -> int:
    """Return the bytes of KV that a token of the bench's model has: full attention, bfloat16."""
    from transformers import AutoConfig  # noqa: PLC0415 - takes seconds

    config = AutoConfig.from_pretrained(model)
    size: int = 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * 2
    return size


def _fio(folder: Path) -> Fio | None:
    try:
        return Fio(Work(str(folder), _FIO_BLOCK_BYTES, _FIO_BLOCKS, _FIO_BLOCKS // 2))
    except FioMissingError:
        return None


def _read(fio: Fio | None, gbps: dict[str, list[float]], seed: int) -> None:
    """Have fio take one sample of each of its ways."""
    if fio is None:
        return
    for variant in fio.variants:
        sample = fio.sample("load", variant, seed)
        gbps[variant].append(sample.bytes / sample.seconds / 1e9)


def _spread(answers: list[Answer]) -> list[float]:
    seconds = [answer.seconds for answer in answers]
    return [min(seconds), max(seconds)]
