"""The workloads' rows of the table."""

from typing import Any, Final

from kvtier_connector.bench.parts import Row
from kvtier_connector.bench.sides.names import TITLES, VLLM

_WORKLOADS: Final = {
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


def rows(report: dict[str, Any]) -> list[Row]:
    """Return rows of what the part's `measure` returns."""
    return _on_a_gpu(report) if "device" in report else _on_a_cpu(report)


def _on_a_cpu(report: dict[str, Any]) -> list[Row]:
    found: list[Row] = []
    for name, title in _WORKLOADS.items():
        section = report.get(name)
        if not section:
            continue
        found.append(_heading(title, section, f"outputs equal: {section['outputs_equal']}"))
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


def _on_a_gpu(report: dict[str, Any]) -> list[Row]:
    found: list[Row] = []
    for name, title in _WORKLOADS.items():
        section = report.get(name)
        if not section:
            continue
        differing = f"answers that differ: {section['requests_differing']} of {section['requests']}"
        found.append(_heading(title, section, differing))
        for figure, label in _FIGURES.items():
            for side in section["sides"]:
                guide = section["guide_percent"]["vllm_offloading"][figure]
                beside = f"the guide's {guide:+.1f} %" if side == VLLM else ""
                found.append((f"  {label}, {TITLES[side]}", _figure(section, side, figure), beside, ""))
        cached = (
            f"{TITLES[side]} {each['hit_rate']['median']:.3f}" for side, each in section["sides"].items()
        )
        found.append(("  share of prompt tokens cached", ", ".join(cached), "", ""))
    return found


def _heading(title: str, section: dict[str, Any], answers: str) -> Row:
    shape = section["shape"]
    return (
        f"{title}, {shape['groups']} x {shape['system_tokens']} tokens, {section['rounds']} rounds",
        answers,
        f"system prompts {shape['system_prompts_over_device']:.2f} of the device cache",
        "",
    )


def _figure(section: dict[str, Any], side: str, figure: str) -> str:
    value = f"{section['sides'][side][figure]['median']:.4g}"
    ratio = section["ratio"].get(side, {}).get(figure)
    if not ratio:
        return value
    low, high = ((end - 1) * 100 for end in ratio["ratio_ci95"])
    return f"{value}, {ratio['percent']:+.1f} % ({low:+.1f} to {high:+.1f})"


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
