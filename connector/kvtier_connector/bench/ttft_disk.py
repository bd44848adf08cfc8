"""Time to first token from disk after a restart, beside a device hit and the disk's own speed."""

import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any, Final

from kvtier_connector.bench.disk.fio import HUGEPAGES_BYTES, Fio, FioMissingError
from kvtier_connector.bench.disk.work import Work
from kvtier_connector.bench.engine import Answer, Ask, bench_engine
from kvtier_connector.bench.hugepages import reserved
from kvtier_connector.config import GIB, ConnectorConfig, kv_transfer_config

_RESTARTS: Final = 3
_HITS_PER_PROMPT: Final = 3
_FIO_BLOCK_BYTES: Final = 512 << 10
"""A chunk of 128 tokens, vLLM's block on a CPU, of the bench's model in bfloat16."""
_FIO_BLOCKS: Final = 1024
_ALLOWED: Final = 1.2
"""How much longer than fio the tier may read."""
_WARM_UP: Final = Ask(seed=-1, prompt_tokens=256)


def bench_ttft_disk(
    model: Path, *, prompt_tokens: int, prompts: int, folder: Path, log: Path
) -> dict[str, Any]:
    """Have one engine store prompts, and the next ones load each from disk and then find it on the device.

    Nothing of it is in the page cache: files are written and read past it (O_DIRECT). fio reads blocks of the
    same size between the prompts.

    Args:
        model: the model's folder.
        prompt_tokens: length of the prompts.
        prompts: number of prompts, each of which is loaded once after each restart.
        folder: on the disk to be measured; what is written there is removed again.
        log: file for the engines' output.

    Returns:
        Medians in seconds, the bytes loaded, fio's bandwidth, and what the time from disk is limited to; the
        last two are None without fio. `missing` says which huge pages the machine lacked.
    """
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix="kvtier-bench-") as scratch,
        reserved(2 * GIB + HUGEPAGES_BYTES) as missing,
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
            cold = [engine.run(Ask(seed, prompt_tokens)) for seed in range(prompts)]
            engine.rest()
        fio = _fio(Path(scratch, "fio"))
        gbps = defaultdict[str, list[float]](list)
        from_disk, hits = list[Answer](), list[Answer]()
        equal = True
        for _ in range(_RESTARTS):
            with bench_engine(settings, log=log) as engine:
                engine.run(Ask(seed=-2, prompt_tokens=256))
                for seed in range(prompts):
                    if fio is not None:
                        for variant in fio.variants:
                            gbps[variant].append(_gbps(fio, variant, seed))
                    engine.rest()
                    from_disk.append(engine.run(Ask(seed, prompt_tokens)))
                    for _ in range(_HITS_PER_PROMPT):
                        hits.append(engine.run(Ask(seed, prompt_tokens)))
                        equal &= hits[-1].tokens == from_disk[-1].tokens
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
        "disk_s": median(answer.seconds for answer in from_disk),
        "spread_s": {
            "device_hit": _spread(hits),
            "disk": _spread(from_disk),
        },
        "fio_gbps": bandwidth,
        "fio_spread_gbps": [min(fastest), max(fastest)] if fastest else None,
        "limit_s": hit_s + _ALLOWED * loaded_bytes / (bandwidth * 1e9) if bandwidth else None,
        "outputs_equal": equal,
        "missing": missing,
    }


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


def _gbps(fio: Fio, variant: str, seed: int) -> float:
    sample = fio.sample("load", variant, seed)
    return sample.bytes / sample.seconds / 1e9


def _spread(answers: list[Answer]) -> list[float]:
    seconds = [answer.seconds for answer in answers]
    return [min(seconds), max(seconds)]
