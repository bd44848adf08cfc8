"""The comparison's rows of the table that `kvtier bench connector` prints."""

from typing import Any, Final

from kvtier_connector.bench.sides.names import NONE, TITLES, VLLM
from kvtier_connector.bench.workloads.rows import TITLES as WORKLOADS

Row = tuple[str, str, str, str]
"""What, measured, beside, limit."""
_FIGURES: Final = {"mean_ttft_s": "mean TTFT", "total_tokens_per_s": "throughput"}


def ttft_rows(ttft: dict[str, Any]) -> list[Row]:
    """Return rows of what `compare_ttft` returns."""
    lives = f"{ttft['turns']} lives of each side, {ttft['repeats']} prompts in each"
    equal = f"outputs equal: {ttft['outputs_equal']}"
    found: list[Row] = [(f"TTFT, {ttft['prompt_tokens']} tokens, {ttft['device']}", equal, lives, "")]
    for side, figures in ttft["sides"].items():
        beside = f"device hit {figures['device_hit_s'] * 1e3:.1f} ms, ready in {figures['ready_s']:.1f} s"
        cold = f"cold {figures['cold_s'] * 1e3:.0f} ms"
        if side == NONE:
            found.append((f"  {TITLES[side]}", cold, beside, ""))
            continue
        low, high = (each * 1e3 for each in figures["spread_s"]["cpu_tier"])
        tier = f"from the tier {figures['cpu_tier_s'] * 1e3:.1f} ms ({low:.1f} to {high:.1f})"
        found.append((f"  {TITLES[side]}", tier, f"{cold}, {beside}", ""))
    return found


def workload_rows(report: dict[str, Any]) -> list[Row]:
    """Return rows of what `compare_workloads` returns."""
    found: list[Row] = []
    for name, title in WORKLOADS.items():
        section = report.get(name)
        if not section:
            continue
        shape = section["shape"]
        found.append(
            (
                f"{title}, {shape['groups']} x {shape['system_tokens']} tokens, {section['rounds']} rounds",
                f"answers that differ: {section['requests_differing']} of {section['requests']}",
                f"system prompts {shape['system_prompts_over_device']:.2f} of the device cache",
                "",
            )
        )
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


def _figure(section: dict[str, Any], side: str, figure: str) -> str:
    value = f"{section['sides'][side][figure]['median']:.4g}"
    ratio = section["ratio"].get(side, {}).get(figure)
    if not ratio:
        return value
    low, high = ((end - 1) * 100 for end in ratio["ratio_ci95"])
    return f"{value}, {ratio['percent']:+.1f} % ({low:+.1f} to {high:+.1f})"
