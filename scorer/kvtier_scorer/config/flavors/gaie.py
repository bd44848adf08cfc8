"""The Gateway API inference extension's picker, 1.2 to 1.5.

Sources: kubernetes-sigs/gateway-api-inference-extension, v1.2.0 and v1.3.1
pkg/epp/scheduling/framework/plugins/multi/prefix/plugin.go (`blockSize`, in characters), v1.4.0
pkg/epp/framework/plugins/scheduling/scorer/prefix/plugin.go (`blockSizeTokens`; `blockSize` alone is
refused), v1.5.0 pkg/epp/framework/plugins/requestcontrol/dataproducer/approximateprefix.
"""

from typing import Any, Final

from kvtier_common.tier import Tier
from kvtier_scorer.config.flavors.document import (
    APPROX_PREFIX_PRODUCER,
    PREFIX,
    Plugin,
    PrefixTier,
    load_plugins,
    minor_version,
    per_tier_config,
    prefix_tiers,
    render,
    unknown_gpu,
)
from kvtier_scorer.config.model import UPSTREAM_SCORERS, PickerConfig, PickerInput, UnsupportedVersionError

API_VERSION: Final = "inference.networking.x-k8s.io/v1alpha1"
TESTED_VERSION: Final = "1.4.0"
SCORERS: Final = UPSTREAM_SCORERS
_BLOCK_SIZE_IN_CHARACTERS: Final = ((1, 2), (1, 3))
_BLOCK_SIZE_IN_TOKENS: Final = (1, 4)
_SINGLE_PREFIX_SCORER: Final = (1, 5)

CHARACTERS_PER_TOKEN: Final = 4
"""averageCharactersPerToken in all of these versions."""

DEFAULT_MAX_PREFIX_TOKENS: Final = 131072
"""Where the model's longest prompt is not known. The picker's own default, 256 blocks, would see only the
first 4,096 tokens of a prompt; llm-d-router's default is this figure (defaultMaxPrefixTokens)."""


def config(given: PickerInput) -> PickerConfig:
    """The configuration for the extension's own picker.

    Raises:
        UnsupportedVersionError: The version is not one of 1.2 to 1.5.
        NoScorerError: No scorer has a weight and a tier.
    """
    version = given.version or TESTED_VERSION
    minor = minor_version(version)
    if minor == _SINGLE_PREFIX_SCORER:
        return gaie_1_5_config(given, version, API_VERSION)
    if minor in _BLOCK_SIZE_IN_CHARACTERS:
        block_size = {"blockSize": given.engine_block_tokens * CHARACTERS_PER_TOKEN}
    elif minor == _BLOCK_SIZE_IN_TOKENS:
        block_size = {"blockSizeTokens": given.engine_block_tokens}
    else:
        raise UnsupportedVersionError(
            f"the Gateway API inference extension's picker {version} is not supported; use 1.2 to 1.5"
        )
    max_blocks = -(-(given.max_prefix_tokens or DEFAULT_MAX_PREFIX_TOKENS) // given.engine_block_tokens)

    def parameters(tier: PrefixTier) -> dict[str, Any]:
        return {"autoTune": tier.entries is None, **block_size, "maxPrefixBlocksToMatch": max_blocks}

    return per_tier_config(given, version, API_VERSION, parameters)


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
