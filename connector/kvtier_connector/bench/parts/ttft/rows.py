"""Time to first token's rows of the table."""

from typing import Any

from kvtier_connector.bench.parts import Row
from kvtier_connector.bench.sides.names import NONE, TITLES


def rows(ttft: dict[str, Any]) -> list[Row]:
    """Return rows of what the part's `measure` returns."""
    return _on_a_gpu(ttft) if "sides" in ttft else _on_a_cpu(ttft)


def _on_a_cpu(ttft: dict[str, Any]) -> list[Row]:
    return [
        (
            f"TTFT from the CPU tier, {ttft['prompt_tokens']} tokens",
            f"{ttft['cpu_tier_s'] * 1e3:.1f} ms, outputs equal: {ttft['outputs_equal']}",
            f"device hit {ttft['device_hit_s'] * 1e3:.1f} ms, cold {ttft['cold_s']:.2f} s",
            "",
        ),
        ("  over a device hit", f"{ttft['over_device_hit']:.3f}", "", "1.10"),
        ("  times faster than cold", f"{ttft['speedup']:.0f}", "", "at least 100"),
    ]


def _on_a_gpu(ttft: dict[str, Any]) -> list[Row]:
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
