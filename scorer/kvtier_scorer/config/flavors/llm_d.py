"""llm-d-router from 0.9: a producer and a scorer for each tier, bound by name.

Source: llm-d/llm-d-router v0.9.0 and v0.10.0, pkg/epp/framework/plugins/requestcontrol/dataproducer/
approximateprefix (parameters, the clamp) and .../scheduling/scorer/prefix (prefixMatchInfoProducerName).
"""

from collections.abc import Iterator
from typing import Any, Final

from kvtier_scorer.config.flavors import document
from kvtier_scorer.config.model import UPSTREAM_SCORERS, PickerConfig, PickerInput, UnsupportedVersionError

API_VERSION: Final = "llm-d.ai/v1alpha1"
TESTED_VERSION: Final = "0.10.0"
SCORERS: Final = UPSTREAM_SCORERS
_FIRST: Final = (0, 9)
_LAST_TESTED: Final = (0, 10)
_AFTER_LAST: Final = (1, 0)

METRICS_SOURCE: Final = "metrics-data-source"
MIN_BLOCK_TOKENS: Final = 64
"""approximateprefix/plugin.go, minBlockSizeTokens: smaller block sizes are raised to it."""


def config(inputs: PickerInput) -> PickerConfig:
    """The configuration for llm-d-router; UnsupportedVersionError unless it is 0.9 or a later 0.x."""
    version = inputs.version or TESTED_VERSION
    minor = document.minor_version(version)
    if not _FIRST <= minor < _AFTER_LAST:
        raise UnsupportedVersionError(f"llm-d-router {version} is not supported; use 0.9 or 0.10")
    block_tokens = max(MIN_BLOCK_TOKENS, inputs.engine_block_tokens)
    tiers = document.prefix_tiers(inputs, block_tokens)
    plugins = [*document.load_plugins(inputs.weights)]
    if inputs.engine_tls:  # in place of the one that is there by default (pkg/epp/config/loader/defaults.go)
        plugins.append(document.Plugin(METRICS_SOURCE, parameters={"scheme": "https"}))
    for tier in tiers:
        plugins += _tier_plugins(tier, block_tokens, inputs.max_prefix_tokens)
    unknown = document.unknown_gpu(tiers)
    warnings = (
        *(_untested_warning(version) if minor > _LAST_TESTED else ()),
        *(_too_small(inputs.engine_block_tokens) if unknown and minor > _LAST_TESTED else ()),
    )
    until_known = _too_large(inputs.engine_block_tokens) if unknown else ()
    return PickerConfig(
        version=version,
        tokens_per_entry=block_tokens,
        entries={tier.tier: tier.entries for tier in tiers},
        text=document.render(API_VERSION, plugins, (*warnings, *until_known)),
        warnings=warnings,
        gpu_from_metrics=unknown,
    )


def _tier_plugins(
    tier: document.PrefixTier, block_tokens: int, max_prefix_tokens: int | None
) -> tuple[document.Plugin, document.Plugin]:
    producer = f"{tier.name}-prefix-cache-producer"
    parameters: dict[str, Any] = {"autoTune": tier.entries is None, "blockSizeTokens": block_tokens}
    if max_prefix_tokens is not None:
        # a cap below one block would match nothing (resolveMaxBlocks)
        parameters["maxPrefixTokensToMatch"] = max(max_prefix_tokens, block_tokens)
    if tier.entries is not None:
        parameters["lruCapacityPerServer"] = tier.entries
    return (
        document.Plugin(document.APPROX_PREFIX_PRODUCER, producer, parameters),
        document.Plugin(
            document.PREFIX,
            f"{tier.name}-prefix-cache-scorer",
            {"prefixMatchInfoProducerName": producer},
            weight=tier.weight,
        ),
    )


def _untested_warning(version: str) -> Iterator[str]:
    yield (
        f"llm-d-router {version} is later than 0.10, the last that kvtier was run with: it may refuse this "
        "configuration or read it otherwise, as it does autoTune, which sizes entries by the engine's "
        "prefix_match_unit where 0.10 has its own 64 tokens: too few entries for a model that mixes "
        "attention with states; use 0.10"
    )


def _too_large(engine_block_tokens: int) -> Iterator[str]:
    """What holds only until an engine has said how large its cache is, which whoever plans passes on.

    Source: GetBlockSize and makeserver, approximateprefix/plugin.go.
    """
    if engine_block_tokens < MIN_BLOCK_TOKENS:
        yield (
            "the size of the device cache is not known, so llm-d-router takes the engine's number of "
            f"{engine_block_tokens}-token blocks as a number of {MIN_BLOCK_TOKENS}-token entries: its GPU "
            f"index is {MIN_BLOCK_TOKENS / engine_block_tokens:g} times too large"
        )


def _too_small(engine_block_tokens: int) -> Iterator[str]:
    """The same of large blocks; prefix_match_unit came after v0.10.0, in 363f912 of 19 August 2026."""
    if engine_block_tokens > MIN_BLOCK_TOKENS:
        yield (
            "the size of the device cache is not known, so llm-d-router takes the engine's number of "
            f"{engine_block_tokens}-token blocks as a number of entries, and after 0.10 the engine's "
            "prefix_match_unit, where it reports one, for the tokens in them: its GPU index is then up to "
            f"{engine_block_tokens / MIN_BLOCK_TOKENS:g} times too small"
        )
