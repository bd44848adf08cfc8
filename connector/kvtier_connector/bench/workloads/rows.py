"""The workload benchmark's rows of the table that `kvtier bench connector` prints."""

from typing import Any, Final

TITLES: Final = {
    "high_cache": "high-cache workload",
    "high_cache_in_gb": "high-cache workload, caches as llm-d counts them in GB",
    "low_cache": "low-cache workload",
}
_FIGURES: Final = {"mean_ttft_s": "mean TTFT", "total_tokens_per_s": "throughput"}
_OF_A_REQUEST: Final = {
    "request_ttft_s": "TTFT of the median request over its own",
    "request_e2e_s": "end to end of the median request over its own",
}
_LIMITS: Final = {
    "high_cache": {"mean_ttft_s": "below -27.8 %", "total_tokens_per_s": "above +21.7 %"},
    "high_cache_in_gb": {},
    "low_cache": {"mean_ttft_s": "within 0.5 %", "total_tokens_per_s": "within 0.5 %"},
}


def rows(report: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return rows of what, measured, beside it, and limit, from what `bench_workloads` returns."""
    found: list[tuple[str, str, str, str]] = []
    for name, title in TITLES.items():
        section = report.get(name)
        if not section:
            continue
        shape = section["shape"]
        what = f"{title}, {shape['groups']} x {shape['system_tokens']} tokens, {section['rounds']} rounds"
        equal = f"outputs equal: {section['outputs_equal']}"
        over = f"system prompts {shape['system_prompts_over_device']:.2f} of the device cache"
        found.append((what, equal, over, ""))
        for figure, label in _FIGURES.items():
            beside = [f"vLLM's own on H100 {section['guide_percent']['vllm_offloading'][figure]:+.1f} %"]
            beside.append(f"LMCache {section['guide_percent']['lmcache'][figure]:+.1f} %")
            if "empty" in section:
                beside.append(f"here a connector that does nothing {_change(section['empty'], figure)}")
            found.append(
                (
                    f"  {label}, tier over device cache alone",
                    _change(section["kvtier"], figure),
                    ", ".join(beside),
                    _LIMITS[name].get(figure, ""),
                )
            )
        for figure, label in _OF_A_REQUEST.items():
            empty = (
                "a connector that does nothing " + _percent(section["empty"], figure)
                if "empty" in section
                else ""
            )
            found.append((f"  {label}", _percent(section["kvtier"], figure), empty, ""))
        found.append(("  share of prompt tokens cached", *_hit_rates(section["kvtier"]), ""))
    return found


def _change(sides: dict[str, Any], figure: str) -> str:
    before, after = (sides[name][figure]["median"] for name in ("device_cache_alone", "with"))
    return f"{_percent(sides, figure)}, {before:.4g} -> {after:.4g}"


def _percent(sides: dict[str, Any], figure: str) -> str:
    ratio = sides["ratio"][figure]
    low, high = ((end - 1) * 100 for end in ratio["ratio_ci95"])
    return f"{ratio['percent']:+.1f} % ({low:+.1f} to {high:+.1f})"


def _hit_rates(sides: dict[str, Any]) -> tuple[str, str]:
    with_it, alone = (sides[name]["hit_rate"]["median"] for name in ("with", "device_cache_alone"))
    return f"{with_it:.3f}", f"device cache alone {alone:.3f}"
