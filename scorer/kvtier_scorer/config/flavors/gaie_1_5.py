"""Version 1.5 of the extension's picker, which can tell only one tier.

Its producer stores every match under one key, whatever the producer's name, so a second producer would
overwrite the first; and with autoTune off its LRU holds defaultLRUCapacityPerServer entries, whatever
lruCapacityPerServer says (v1.5.0 approximateprefix/plugin.go, PrepareRequestData and makeserver). What is
left to choose is the size of an entry: it is set so that 31,250 entries hold the largest tier with a weight.
"""

from typing import Final

from kvtier_common.tier import Tier
from kvtier_scorer.config.flavors.document import APPROX_PREFIX_PRODUCER, PREFIX, Plugin, load_plugins, render
from kvtier_scorer.config.flavors.tiers import PrefixTier, prefix_tiers, unknown_gpu
from kvtier_scorer.config.model import PickerConfig, PickerInput

FIXED_ENTRIES: Final = 31250
"""v1.5.0 approximateprefix/types.go, defaultLRUCapacityPerServer."""

MIN_BLOCK_TOKENS: Final = 8
"""Smaller entries would hash 131,072 tokens of a prompt over 16,384 times a request."""


def gaie_1_5_config(given: PickerInput, version: str, api_version: str) -> PickerConfig:
    """One prefix scorer with the weights of all tiers together, sized by the largest of them.

    Raises:
        NoScorerError: No scorer has a weight and a tier.
    """
    tiers = prefix_tiers(given, 1)
    plugins = [*load_plugins(given.weights)]
    warnings: tuple[str, ...] = ()
    block_tokens, entries = given.engine_block_tokens, dict[Tier, int | None]()
    if tiers:
        # the tiers are inclusive: what a smaller one holds, the largest holds too
        largest = tiers[-1]
        auto_tune = largest.entries is None
        if largest.entries is not None:
            block_tokens = max(-(-largest.entries // FIXED_ENTRIES), MIN_BLOCK_TOKENS)
            entries[largest.tier] = FIXED_ENTRIES
        warnings = (_warning(version, largest, block_tokens),)
        plugins += [
            Plugin(
                APPROX_PREFIX_PRODUCER,
                parameters={
                    "autoTune": auto_tune,
                    "blockSizeTokens": block_tokens,
                    "maxPrefixTokensToMatch": max(
                        given.max_prefix_tokens or _DEFAULT_MAX_PREFIX_TOKENS, block_tokens
                    ),
                },
            ),
            Plugin(PREFIX, weight=sum(tier.weight for tier in tiers)),
        ]
    return PickerConfig(
        version=version,
        tokens_per_entry=block_tokens,
        entries=entries,
        text=render(api_version, plugins, warnings),
        warnings=warnings,
        gpu_from_metrics=unknown_gpu(tiers[-1:]),
    )


_DEFAULT_MAX_PREFIX_TOKENS: Final = 131072


def _warning(version: str, tier: PrefixTier, block_tokens: int) -> str:
    sized = "" if tier.entries is None else f" of {FIXED_ENTRIES} entries of {block_tokens} tokens"
    return (
        f"picker {version} ignores lruCapacityPerServer and keeps one prefix index{sized}: it stands for the "
        f"{tier.name} tier alone; use 1.4 or flavor llm-d to tell the tiers apart"
    )
