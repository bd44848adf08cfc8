"""A life as an engine leaves it, made up: seconds and tokens by where a prompt was."""

from typing import Any

from tests.bench.card.settings import Settings

_REQUEST = {"ttft_s": 0.2, "e2e_s": 0.4, "cached": 0, "tokens": [1, 2]}


def lived(
    settings: Settings, *, tier: bool = True, tier_s: float = 0.06, round_s: float = 2.0
) -> dict[str, Any]:
    """What `life.live` returns, with a tier that takes so long, and rounds that do."""
    seconds = {"cold": 0.5, "device_hit": 0.05, **({"cpu_tier": tier_s} if tier else {})}
    cached = {"cold": 0, "device_hit": 15_392, "cpu_tier": 15_360}
    return {
        "ready_s": 20.0,
        "prompt_tokens": 15_376,
        "growth": {"took_s": 9.0, "growing": [0.0104] * 200, "grown": [0.01] * 200} if tier else None,
        "ttft": {
            kind: [{"seconds": each, "tokens": [7], "cached": cached[kind]}] * 3
            for kind, each in seconds.items()
        },
        "answers": [{kind: [[1, 2]] for kind in seconds}] * 2,
        "rounds": {
            name: [
                {
                    "seconds": round_s,
                    "requests": [_REQUEST] * workload.requests,
                    "loaded_bytes": 0.0,
                    "store_bytes": 0.0,
                }
            ]
            for name, workload in settings.workloads.items()
        },
    }


def copies() -> list[dict[str, Any]]:
    """What `bench_gpu` returns: a peak of 50 GB/s, of which small blocks have less."""
    return [
        {
            "block_kib": kib,
            "direction": direction,
            "kvtier_gbps": 50 * part,
            "peak_gbps": 50.0,
            "over_peak": part,
            "region": "4 KiB pages",
            "pinned": "locked",
        }
        for kib, part in ((128, 0.84), (8192, 0.98))
        for direction in ("to_device", "from_device")
    ]
