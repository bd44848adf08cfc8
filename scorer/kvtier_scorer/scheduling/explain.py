"""Makes explanations; loops over pods, which a pick never does."""

from math import isfinite

import numpy as np

from kvtier_scorer.config.settings.model import PickerSettings
from kvtier_scorer.scheduling.explanation import Explanation, PodExplanation
from kvtier_scorer.scheduling.model import PickRequest
from kvtier_scorer.scheduling.pods import PodTable
from kvtier_scorer.scheduling.prompt_blocks import block_hashes, prompt_tokens
from kvtier_scorer.scheduling.scoring import ScoredCandidates, fresh_readings, score_candidates
from kvtier_scorer.scheduling.shedding import saturated


def explain(
    settings: PickerSettings, table: PodTable, request: PickRequest, now_s: float, refused: str | None
) -> Explanation:
    """What a pick would be made from.

    Args:
        settings: The picker's.
        table: Every pod that is ready.
        request: What is asked for.
        now_s: Now, on the clock of the pods' readings.
        refused: What the client would be told instead; None where there would be a pick.
    """
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
    is_saturated = saturated(settings.shedding, columns.queue_depth, columns.kv_cache_utilization, is_fresh)
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
            )
        )
    return described
