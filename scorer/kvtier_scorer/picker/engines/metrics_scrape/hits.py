"""Confirmed hits: what the engines' counters grew by between two scrapes."""

from dataclasses import astuple

from kvtier_scorer.picker.observability.counters import HitTokens


def increase(before: HitTokens, now: HitTokens) -> HitTokens:
    """What was added since `before`.

    A counter that is lower than before belongs to an engine that started anew; all of it is new, and all of
    the other counters too, whatever they have reached meanwhile.
    """
    pairs = tuple(zip(astuple(before), astuple(now), strict=True))
    if any(after < earlier for earlier, after in pairs):
        return now
    return HitTokens(*(after - earlier for earlier, after in pairs))
