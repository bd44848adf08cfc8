"""The Gateway API inference extension's picker, 1.2 to 1.5.

Sources: kubernetes-sigs/gateway-api-inference-extension, v1.2.0 and v1.3.1
pkg/epp/scheduling/framework/plugins/multi/prefix/plugin.go (`blockSize`, in characters), v1.4.0
pkg/epp/framework/plugins/scheduling/scorer/prefix/plugin.go (`blockSizeTokens`; `blockSize` alone is
refused), v1.5.0 pkg/epp/framework/plugins/requestcontrol/dataproducer/approximateprefix.
"""

from typing import Any, Final

from kvtier_scorer.config.errors import UnsupportedVersionError
from kvtier_scorer.config.flavors.gaie_1_5 import gaie_1_5_config
from kvtier_scorer.config.flavors.per_tier import per_tier_config
from kvtier_scorer.config.flavors.tiers import PrefixTier
from kvtier_scorer.config.flavors.version import minor_version
from kvtier_scorer.config.model import PickerConfig, PickerInput
from kvtier_scorer.config.scorer_names import UPSTREAM_SCORERS

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
