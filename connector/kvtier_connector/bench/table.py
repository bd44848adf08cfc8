"""The table of what was measured, beside what it is compared with and what it should reach."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from rich.table import Table

from kvtier_connector.bench.sides import rows as of_sides
from kvtier_connector.bench.workloads.rows import rows as workload_rows

Row = tuple[str, str, str, str]
"""What, measured, beside, limit."""


def table(report: dict[str, Any]) -> Table:
    """Return the table of the report's parts, by their names."""
    made = Table("what", "measured", "beside", "limit", title="kvtier connector")
    for name, part in report.items():
        for row in _ROWS[name](part):
            made.add_row(*row)
    return made


def _index(index: dict[str, Any]) -> Iterator[Row]:
    yield (
        "index, resident bytes a block",
        f"{index['kvtier_bytes_per_block']:.0f}",
        f"vLLM's LRU {index['vllm_bytes_per_block']:.0f}",
        "100",
    )
    yield (
        f"index, longest operation on {index['batch']} keys, ms",
        f"{index['kvtier_max_ms']:.2f}",
        f"vLLM's LRU {index['vllm_max_ms']:.2f}",
        "1",
    )
    yield (
        "  of it on the CPU (the rest is other processes), ms",
        f"{index['kvtier_max_cpu_ms']:.2f}",
        f"vLLM's LRU {index['vllm_max_cpu_ms']:.2f}",
        "",
    )


def _hit_rate(found: list[dict[str, Any]]) -> Iterator[Row]:
    for each in found:
        yield (
            f"hit rate, {each['workload']}, {each['capacity_chunks']} chunks",
            f"{each['kvtier']:.3f}",
            f"LRU {each['lru']:.3f}, ARC {each['arc']:.3f}, optimal {each['optimal']:.3f}",
            "",
        )


def _region(region: dict[str, Any]) -> Iterator[Row]:
    if region.get("ratio") is None:
        yield ("region's start on huge pages", "not measured", str(region.get("missing", "")), "")
        return
    yield (
        "region's start on huge pages, s a GiB",
        f"{region['hugepage_s_per_gib']:.3f}",
        f"4 KiB pages {region['page4k_s_per_gib']:.3f}",
        "",
    )
    yield ("  times faster", f"{region['ratio']:.1f}", "", "at least 4")


def _disk(rows: list[dict[str, Any]]) -> Iterator[Row]:
    for row in rows:
        others = [
            f"{name} {row[key]:.2f}"
            for name, key in (
                ("fio", "fio_gbps"),
                ("fio into as much memory", "fio_all_memory_gbps"),
                ("vLLM fs", "vllm_fs_gbps"),
                ("LMCache", "lmcache_gbps"),
            )
            if row.get(key)
        ]
        yield (
            f"disk, {row['op']} of {row['block_kib']} KiB, GB/s",
            f"{row['kvtier_gbps']:.2f}",
            ", ".join(others),
            "0.95 of fio",
        )


def _gpu(rows: list[dict[str, Any]]) -> Iterator[Row]:
    for row in rows:
        yield (
            f"copy {row['direction'].replace('_', ' ')}, blocks of {row['block_kib']} KiB, GB/s",
            f"{row['kvtier_gbps']:.2f}, {row['over_peak']:.3f} of the peak",
            f"one cudaMemcpy {row['peak_gbps']:.2f}",
            "0.95 of the peak from 512 KiB",
        )


def _workloads(report: dict[str, Any]) -> list[Row]:
    return of_sides.workload_rows(report) if "device" in report else workload_rows(report)


def _ttft(ttft: dict[str, Any]) -> Iterator[Row]:
    if "sides" in ttft:
        yield from of_sides.ttft_rows(ttft)
        return
    yield (
        f"TTFT from the CPU tier, {ttft['prompt_tokens']} tokens",
        f"{ttft['cpu_tier_s'] * 1e3:.1f} ms, outputs equal: {ttft['outputs_equal']}",
        f"device hit {ttft['device_hit_s'] * 1e3:.1f} ms, cold {ttft['cold_s']:.2f} s",
        "",
    )
    yield ("  over a device hit", f"{ttft['over_device_hit']:.3f}", "", "1.10")
    yield ("  times faster than cold", f"{ttft['speedup']:.0f}", "", "at least 100")


def _ttft_disk(ttft: dict[str, Any]) -> Iterator[Row]:
    limit = f"{ttft['limit_s'] * 1e3:.1f} ms" if ttft["limit_s"] else "fio is missing"
    speed = f", fio {ttft['fio_gbps']:.2f} GB/s" if ttft["fio_gbps"] else ""
    hit_ms, at_once_ms = ttft["device_hit_s"] * 1e3, ttft["device_hit_at_once_s"] * 1e3
    yield (
        f"TTFT from disk after a restart, {ttft['prompt_tokens']} tokens",
        f"{ttft['disk_s'] * 1e3:.1f} ms, outputs equal: {ttft['outputs_equal']}",
        f"device hit {hit_ms:.1f} ms ({at_once_ms:.1f} ms at once), cold {ttft['cold_s']:.2f} s{speed}",
        limit,
    )


def _overhead(found: list[dict[str, Any]]) -> Iterator[Row]:
    for overhead in found:
        tokens = f"{overhead['prompt_tokens']} + {overhead['output_tokens']} tokens"
        yield (
            f"tier on but unused, over off, {tokens}, {overhead['pairs']} pairs",
            _ratio(overhead, "kvtier"),
            f"a connector that does nothing {_ratio(overhead, 'empty')}",
            "1.005",
        )


def _ratio(figures: dict[str, Any], name: str) -> str:
    low, high = figures[f"{name}_ratio_ci95"]
    extra_ms = figures[f"{name}_extra_s"] * 1e3
    return f"{figures[f'{name}_ratio']:.4f} (95% interval {low:.4f} to {high:.4f}), {extra_ms:+.1f} ms"


def _never_slower(found: list[dict[str, Any]]) -> Iterator[Row]:
    for each in found:
        speeds = f"{each['disk_gbps']:g} GB/s, {each['prefill_tokens_s']:,.0f} tokens/s"
        ratios = f"ratio {each['ratio']:.3f}, p99 {each['p99_ratio']:.3f}"
        yield (
            f"TTFT with a disk of {speeds}, {each['prompt_tokens']:,} tokens, s",
            f"{each['ttft_on_s']:.3f}, {each['from_disk']:.0%} read; {ratios}",
            f"no tier {each['ttft_off_s']:.3f}, disk alone {each['ttft_disk_s']:.3f}",
            "ratio 1.05",
        )


def _growth(growth: dict[str, Any]) -> Iterator[Row]:
    for what, name in (("median", "s"), ("99th percentile", "p99_s"), ("longest", "longest_s")):
        yield (
            f"a short request while {growth['gib']:g} GiB are taken and locked beside it, {what}, ms",
            f"{1000 * growth[f'while_growing_{name}']:.1f}",
            f"afterwards {1000 * growth[f'grown_{name}']:.1f}",
            "",
        )


_ROWS: Final[dict[str, Callable[[Any], Any]]] = {
    "index": _index,
    "hit_rate": _hit_rate,
    "region": _region,
    "disk": _disk,
    "disk_memory": _disk,
    "ttft": _ttft,
    "ttft_disk": _ttft_disk,
    "workloads": _workloads,
    "overhead": _overhead,
    "never_slower": _never_slower,
    "growth": _growth,
    "gpu": _gpu,
}
