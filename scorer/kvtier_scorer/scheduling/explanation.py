"""Why a request would go where it would: each pod's numbers from each scorer."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np

from kvtier_common.tier import Tier
from kvtier_scorer.config.settings import PickerSettings
from kvtier_scorer.scheduling.model import PickRequest, block_hashes, prompt_tokens
from kvtier_scorer.scheduling.pods import PodTable
from kvtier_scorer.scheduling.scoring import (
    ScoredCandidates,
    fresh_readings,
    saturated_pods,
    score_candidates,
)


@dataclass(frozen=True, slots=True)
class PodExplanation:
    """One pod; what was read of its load is of the last reading."""

    name: str
    address: str
    excluded: str | None  # why it was not a candidate; None where it was one
    preferred: bool  # whether it comes before others because it holds most of the prompt
    best: bool  # whether it has the highest score; of several, chance picks one
    total: float  # sum of score times weight
    scores: Mapping[str, float]  # what each scorer gave it, 0 to 1
    queue_depth: int
    picked: int  # requests sent to it since the reading
    running: int
    kv_cache_utilization: float
    loras: tuple[str, ...]
    reading_age_s: float | None  # None before the first reading
    fresh: bool  # whether the reading is recent enough to say something
    saturated: bool  # whether the shed rule counts it as saturated
    matched_tokens: Mapping[Tier, int]  # tokens of the prompt that each tier is believed to hold
    kept_tokens: int  # tokens of the prompt that it keeps in memory because a request's `retain` said so


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a pick would be made from at this moment."""

    refused: str | None  # what the client would be told instead of a pick; None where there would be one
    prompt_tokens: int
    block_tokens: int | None  # None without a prefix scorer
    blocks: int  # blocks of the prompt that were looked up
    weights: Mapping[str, float]
    pods: tuple[PodExplanation, ...]  # every pod, the best first; those that were no candidates last

    def as_json(self) -> dict[str, Any]:
        """This as plain values, in the same names; tiers and scorers by theirs."""
        plain = asdict(self)
        for pod, entry in zip(self.pods, plain["pods"], strict=True):
            entry["matched_tokens"] = {tier.label: tokens for tier, tokens in pod.matched_tokens.items()}
        return plain


def explain(
    settings: PickerSettings, table: PodTable, request: PickRequest, now_s: float, refused: str | None
) -> Explanation:
    """What a pick would be made from; `refused` is what the client would be told instead."""
    prefix = settings.prefix
    hashes = block_hashes(request.prompt, prefix)
    candidates = table.candidates(request.subset)
    # with the others' depths among them, the candidates' queue scores would be other ones
    others = np.setdiff1d(table.candidates(None), candidates)
    pods: list[PodExplanation] = []
    for numbers, excluded in ((candidates, None), (others, "not in the subset that the gateway allows")):
        if len(numbers):
            scored = score_candidates(settings, table, numbers, hashes, now_s)
            described = _pods(settings, table, scored, excluded, now_s)
            pods += sorted(described, key=lambda pod: (not pod.preferred, -pod.total))
    return Explanation(
        refused=refused,
        prompt_tokens=prompt_tokens(request.prompt),
        block_tokens=None if prefix is None else prefix.block_tokens,
        blocks=len(hashes),
        weights={scorer.name: scorer.weight for scorer in settings.scorers},
        pods=tuple(pods),
    )


def _pods(
    settings: PickerSettings, table: PodTable, scored: ScoredCandidates, excluded: str | None, now_s: float
) -> list[PodExplanation]:
    numbers, columns = scored.numbers, scored.columns
    is_fresh = fresh_readings(settings, table, numbers, now_s)
    is_saturated = saturated_pods(
        settings.shedding, columns.queue_depth, columns.kv_cache_utilization, is_fresh
    )
    best = set() if excluded else set(scored.best().tolist())
    described = []
    for place, number in enumerate(numbers.tolist()):
        info = table.info(number)
        age_s = now_s - float(table.read_at_s[number])
        described.append(
            PodExplanation(
                name=info.name,
                address=info.address,
                excluded=excluded,
                preferred=scored.preferred is not None and bool(scored.preferred[place]),
                best=place in best,
                total=0.0 if excluded else float(scored.totals[place]),
                scores={}
                if excluded
                else {name: float(scores[place]) for name, scores in scored.scores.items()},
                queue_depth=int(columns.queue_depth[place]),
                picked=int(columns.picked[place]),
                running=int(table.running[number]),
                kv_cache_utilization=float(columns.kv_cache_utilization[place]),
                loras=tuple(sorted(table.loras.get(number, ()))),
                reading_age_s=age_s if isfinite(age_s) else None,
                fresh=bool(is_fresh[place]),
                saturated=bool(is_saturated[place]),
                matched_tokens=scored.matched_tokens(place, settings.prefix),
                kept_tokens=scored.kept_tokens(place, settings.prefix),
            )
        )
    return described
