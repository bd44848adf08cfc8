"""What pieces come to: figures, and whether each promise was kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from tests.bench.card.budget import Done, Piece, left_out
from tests.bench.card.piece import COPIES, KIND, LIFE, pieces_of
from tests.bench.card.settings import HIGH, NEW, Settings, model_config

from kvtier_connector.bench import life
from kvtier_connector.bench.choices import KVTIER, NONE, VLLM
from kvtier_connector.bench.load import kv_bytes_per_token

MET, MISSED, UNKNOWN = "met", "missed", "not measured"
_SMALL_KIB: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One promise."""

    what: str
    measured: float | None  # a ratio; None where a side of it is missing
    limit: float
    at_least: bool = False  # whether the ratio is to be at least the limit, not at most

    @property
    def outcome(self) -> str:
        """Whether it was kept."""
        if self.measured is None:
            return UNKNOWN
        kept = self.measured >= self.limit if self.at_least else self.measured <= self.limit
        return MET if kept else MISSED


def results(settings: Settings, done: Done) -> dict[str, Any]:
    """Return all figures of a run, as JSON has them."""
    pieces = pieces_of(settings)
    lives = {
        side: [done[piece.name]["figures"] for piece in pieces if _is_life(piece, side, done)]
        for side in settings.sides
    }
    lives = {side: each for side, each in lives.items() if each}
    token_bytes = kv_bytes_per_token(model_config(settings.device, settings.shape), 2)
    figures: dict[str, Any] = {
        "copies": done.get(COPIES, {}).get("figures"),
        "kinds": {
            piece.what: _kind(done[piece.name]["figures"])
            for piece in pieces
            if piece.kind == KIND and "figures" in done.get(piece.name, {})
        },
        "not_there": {
            piece.name: str(done[piece.name].get("absent") or done[piece.name].get("error"))
            for piece in pieces
            if piece.name in done and "figures" not in done[piece.name]
        },
        "left_out": left_out(pieces, done),
        "token_bytes": token_bytes,
    }
    if lives:
        figures |= life.report(lives, settings.workloads, token_bytes=token_bytes)
        figures["round_s"] = {
            name: {
                side: [one["seconds"] for each in of_side for one in each["rounds"][name]]
                for side, of_side in lives.items()
            }
            for name in settings.workloads
        }
    return figures


def _is_life(piece: Piece, side: str, done: Done) -> bool:
    return piece.kind == LIFE and piece.what == side and "figures" in done.get(piece.name, {})


def _kind(lived: dict[str, Any]) -> dict[str, Any]:
    figures = life.report({KVTIER: [lived]}, {}, token_bytes=1)["ttft"]
    as_cold = all(answer["cold"][0] in answer["cpu_tier"] for answer in lived["answers"])
    return {
        **figures["sides"][KVTIER],
        "outputs_differing": figures["outputs_differing"],
        "as_cold": as_cold,
    }


def dma_s(figures: Mapping[str, Any]) -> float | None:
    """Return how long one copy of what kvtier loads takes, by the copies' own peak; None if not measured."""
    kvtier = _first_tokens(figures, KVTIER)
    if not figures["copies"] or "cpu_tier" not in kvtier.get("cached_tokens", {}):
        return None
    peaks = [row["peak_gbps"] for row in figures["copies"] if row["direction"] == "to_device"]
    loaded_bytes = kvtier["cached_tokens"]["cpu_tier"] * figures["token_bytes"]
    return float(loaded_bytes / (median(peaks) * 1e9))


def verdicts(figures: Mapping[str, Any]) -> list[Verdict]:
    """Return what was promised of kvtier by default, with what was measured."""
    kvtier, vllm = _first_tokens(figures, KVTIER), _first_tokens(figures, VLLM)
    hit_s, copy_s = kvtier.get("device_hit_s"), dma_s(figures)
    longer_s = max(hit_s, copy_s) if hit_s is not None and copy_s is not None else None
    found = [
        Verdict(
            what="from the tier, over the longer of a device hit and one copy",
            measured=_ratio(kvtier.get("cpu_tier_s"), longer_s),
            limit=1.25,
        )
    ]
    for name, what, limit in (
        ("cpu_tier_s", "from the tier, over vLLM's own", 0.75),
        ("cold_s", "cold, over vLLM's own", 1.02),
        ("device_hit_s", "a device hit, over vLLM's own", 1.02),
    ):
        measured = _ratio(kvtier.get(name), vllm.get(name))
        found.append(Verdict(what=what, measured=measured, limit=limit))
    found += [
        Verdict(
            what="throughput of the high-cache workload, over vLLM's own",
            measured=_throughput(figures, HIGH, over=VLLM),
            limit=1.3,
            at_least=True,
        ),
        Verdict(
            what="throughput of prompts that nobody asks again, over no tier",
            measured=_throughput(figures, NEW, over=NONE),
            limit=0.98,
            at_least=True,
        ),
        Verdict(
            what="99th percentile while the tier is page-locked, over afterwards",
            measured=((figures.get("growth") or {}).get(KVTIER) or {}).get("p99_ratio"),
            limit=1.05,
        ),
        Verdict(
            what=f"copies of {_SMALL_KIB} KiB, over one copy, the slower direction",
            measured=min(
                (row["over_peak"] for row in figures["copies"] or () if row["block_kib"] == _SMALL_KIB),
                default=None,
            ),
            limit=0.8,
            at_least=True,
        ),
    ]
    return found


def is_compared(figures: Mapping[str, Any]) -> bool:
    """Tell whether answers came from more than one side."""
    return len(figures.get("ttft", {}).get("sides", {})) > 1


def all_equal(figures: Mapping[str, Any]) -> bool:
    """Tell whether every prompt was answered alike from every cache, of every side and kind measured."""
    kinds = sum(kind["outputs_differing"] for kind in figures["kinds"].values())
    return not kinds and not figures.get("ttft", {}).get("outputs_differing", 0)


def _first_tokens(figures: Mapping[str, Any], side: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = figures.get("ttft", {}).get("sides", {}).get(side, {})
    return found


def _throughput(figures: Mapping[str, Any], workload: str, *, over: str) -> float | None:
    """Tokens a second with kvtier over those of another side."""
    sides = figures.get("workloads", {}).get(workload, {}).get("sides", {})
    if not {KVTIER, over} <= sides.keys():
        return None
    one, other = (sides[side]["total_tokens_per_s"]["median"] for side in (KVTIER, over))
    return _ratio(one, other)


def _ratio(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else one / other
