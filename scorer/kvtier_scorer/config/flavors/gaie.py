"""The Gateway API inference extension's picker, 1.4 and 1.5.

1.4 has a prefix scorer a tier (kubernetes-sigs/gateway-api-inference-extension v1.4.0,
pkg/epp/framework/plugins/scheduling/scorer/prefix/plugin.go). 1.5 can tell only one tier: its producer
stores every match under one key, so a second producer would overwrite the first; and with autoTune off its
LRU holds defaultLRUCapacityPerServer entries, whatever lruCapacityPerServer says (v1.5.0
approximateprefix/plugin.go, PrepareRequestData and makeserver). What is left to choose is the size of an
entry: it is set so that 31,250 entries hold the largest tier with a weight.
"""

from typing import Final

from kvtier_common.tier import Tier
from kvtier_scorer.config.flavors import document
from kvtier_scorer.config.model import UPSTREAM_SCORERS, PickerConfig, PickerInput, UnsupportedVersionError

API_VERSION: Final = "inference.networking.x-k8s.io/v1alpha1"
TESTED_VERSION: Final = "1.4.0"
SCORERS: Final = UPSTREAM_SCORERS
_PREFIX_SCORER_A_TIER: Final = (1, 4)
_SINGLE_PREFIX_SCORER: Final = (1, 5)
_DEFAULT_MAX_PREFIX_TOKENS: Final = 131072
"""Where the model's longest prompt is not known. The picker's own default, 256 blocks, would see only the
first 4,096 tokens of a prompt; llm-d-router's default is this figure (defaultMaxPrefixTokens)."""
FIXED_ENTRIES: Final = 31250  # v1.5.0 approximateprefix/types.go, defaultLRUCapacityPerServer
MIN_BLOCK_TOKENS: Final = 8
"""Smaller entries would hash 131,072 tokens of a prompt over 16,384 times a request."""


def config(inputs: PickerInput) -> PickerConfig:
    """The configuration for the extension's own picker; UnsupportedVersionError unless it is 1.4 or 1.5."""
    version = inputs.version or TESTED_VERSION
    minor = document.minor_version(version)
    most_tokens = inputs.max_prefix_tokens or _DEFAULT_MAX_PREFIX_TOKENS
    if minor == _SINGLE_PREFIX_SCORER:
        return _config_1_5(inputs, version, most_tokens)
    if minor != _PREFIX_SCORER_A_TIER:
        raise UnsupportedVersionError(
            f"the Gateway API inference extension's picker {version} is not supported; use 1.4 or 1.5"
        )
    block_tokens = inputs.engine_block_tokens
    shared = {"blockSizeTokens": block_tokens, "maxPrefixBlocksToMatch": -(-most_tokens // block_tokens)}
    return document.per_tier_config(
        inputs, version, API_VERSION, lambda tier: {"autoTune": tier.entries is None, **shared}
    )


def _config_1_5(inputs: PickerInput, version: str, most_tokens: int) -> PickerConfig:
    """One prefix scorer with the weights of all tiers together, sized by the largest of them."""
    tiers = document.prefix_tiers(inputs, 1)
    plugins = [*document.load_plugins(inputs.weights)]
    warnings: tuple[str, ...] = ()
    block_tokens, entries = inputs.engine_block_tokens, dict[Tier, int | None]()
    if tiers:
        # the tiers are inclusive: what a smaller one holds, the largest holds too
        largest = tiers[-1]
        if largest.entries is not None:
            block_tokens = max(-(-largest.entries // FIXED_ENTRIES), MIN_BLOCK_TOKENS)
            entries[largest.tier] = FIXED_ENTRIES
        warnings = (_warning(version, largest, block_tokens),)
        plugins += [
            document.Plugin(
                document.APPROX_PREFIX_PRODUCER,
                parameters={
                    "autoTune": largest.entries is None,
                    "blockSizeTokens": block_tokens,
                    "maxPrefixTokensToMatch": max(most_tokens, block_tokens),
                },
            ),
            document.Plugin(document.PREFIX, weight=sum(tier.weight for tier in tiers)),
        ]
    return PickerConfig(
        version=version,
        tokens_per_entry=block_tokens,
        entries=entries,
        text=document.render(API_VERSION, plugins, warnings),
        warnings=warnings,
        gpu_from_metrics=document.unknown_gpu(tiers[-1:]),
    )


def _warning(version: str, tier: document.PrefixTier, block_tokens: int) -> str:
    sized = "" if tier.entries is None else f" of {FIXED_ENTRIES} entries of {block_tokens} tokens"
    return (
        f"picker {version} ignores lruCapacityPerServer and keeps one prefix index{sized}: it stands for the "
        f"{tier.name} tier alone; use 1.4 or flavor llm-d to tell the tiers apart"
    )
