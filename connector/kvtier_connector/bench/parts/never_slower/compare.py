"""Prompts that an earlier engine has left on a disk, asked of engines with that tier and without."""

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from kvtier_connector.bench.parts import Row
from kvtier_connector.bench.parts.never_slower.engine import TOKEN_BYTES, StandIn, stand_in
from kvtier_connector.bench.run import Run
from kvtier_connector.core.disk.break_even import Pace, TokenSpan

DISK_GBPS: Final = (0.1, 0.3, 1.0, 3.0, 10.0)
PROMPT_TOKENS: Final = (2_000, 8_000, 30_000)


@dataclass(frozen=True, slots=True)
class Device:
    """A stand-in for a device that computes: it sleeps.

    Args:
        prefill_tokens_s: tokens a second of a prompt of 2,000.
        sped_up: how many times faster everything is, the disk too, so that a slow device can be waited for.
    """

    prefill_tokens_s: float
    sped_up: float = 1.0

    @property
    def pace(self) -> Pace:
        """Dense layers, and attention that takes as long as they do at 32,768 tokens before a token."""
        token_s = 1 / self.prefill_tokens_s / self.sped_up
        return Pace(token_s, token_s / 32_768)


DEVICES: Final = (Device(2_000, sped_up=10), Device(33_000))
"""A CPU of some cores with a small model, and a GPU with one of 8 billion parameters."""


@dataclass(frozen=True, slots=True)
class _Served:
    """Seconds to the first token with the tier and without, and the tokens that the tier had."""

    on_s: float
    off_s: float
    found_tokens: int


def measure(run: Run, prompts: int = 4) -> list[dict[str, Any]]:
    """Measure every disk with every device and length; engines with and without the tier take turns.

    The run's folder takes the tiers' files: on a disk that is faster than what it stands for.

    Args:
        run: what all parts are told.
        prompts: of each length.

    Returns:
        A row for each: medians of seconds to the first token with the tier, without it, and of the disk
        alone; `ratio` of with to without, `p99_ratio` of their 99th percentiles with the prompts that were
        served before, `best_ratio` of with to the better of the two, and what share of the tokens was read.
    """
    found = list[dict[str, Any]]()
    for gbps in DISK_GBPS:
        for device in DEVICES:
            for tokens in PROMPT_TOKENS:
                row = never_slower_row(gbps, device, tokens, prompts=prompts, folder=run.folder)
                found.append(row)
                run.say(
                    f"{gbps:g} GB/s, {device.prefill_tokens_s:,.0f} tokens/s, {tokens:,} tokens: "
                    f"{row['ttft_on_s']:.3f} s with the tier, {row['ttft_off_s']:.3f} s without"
                )
    return found


def rows(found: list[dict[str, Any]]) -> Iterator[Row]:
    """Return rows of what `measure` returns."""
    for each in found:
        speeds = f"{each['disk_gbps']:g} GB/s, {each['prefill_tokens_s']:,.0f} tokens/s"
        ratios = f"ratio {each['ratio']:.3f}, p99 {each['p99_ratio']:.3f}"
        yield (
            f"TTFT with a disk of {speeds}, {each['prompt_tokens']:,} tokens, s",
            f"{each['ttft_on_s']:.3f}, {each['from_disk']:.0%} read; {ratios}",
            f"no tier {each['ttft_off_s']:.3f}, disk alone {each['ttft_disk_s']:.3f}",
            "ratio 1.05",
        )


def never_slower_row(
    gbps: float, device: Device, tokens: int, *, prompts: int, folder: Path
) -> dict[str, Any]:
    """Measure one disk with one device and length; see `measure`."""
    names = [f"{tokens}/{number}" for number in range(prompts)]
    disk_bytes_per_s = gbps * 1e9 * device.sped_up
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        with stand_in(Path(scratch), disk_bytes_per_s, device.pace) as before:
            cold = [_served(before, name, tokens) for name in names]
        with stand_in(Path(scratch), disk_bytes_per_s, device.pace) as after:
            warm = [_served(after, name, tokens) for name in names]
    on, off = [each.on_s for each in warm], [each.off_s for each in cold + warm]
    disk_s = tokens * TOKEN_BYTES / disk_bytes_per_s
    every_on = [each.on_s for each in cold + warm]
    return {
        "disk_gbps": gbps,
        "prefill_tokens_s": device.prefill_tokens_s,
        "sped_up": device.sped_up,
        "prompt_tokens": tokens,
        "ttft_on_s": median(on),
        "ttft_off_s": median(off),
        "ttft_disk_s": disk_s,
        "ratio": median(on) / median(off),
        "p99_ratio": float(np.percentile(every_on, 99) / np.percentile(off, 99)),
        "best_ratio": median(on) / min(median(off), disk_s),
        "from_disk": sum(each.found_tokens for each in warm) / (tokens * prompts),
    }


def _served(engine: StandIn, name: str, tokens: int) -> _Served:
    """Serve a prompt with the tier and without, in an order drawn by its name."""

    def without() -> float:
        return engine.compute(TokenSpan.of(0, tokens))

    if random.Random(name).choice((True, False)):  # noqa: S311 - not a secret
        off_s = without()
        on_s, found_tokens = engine.ask(name, tokens)
    else:
        on_s, found_tokens = engine.ask(name, tokens)
        off_s = without()
    return _Served(on_s, off_s, found_tokens)
