"""kvtier's own picker: one prefix scorer a tier, in blocks of the engine.

`settings/parse.py` reads what is written here; a test holds the two together.
"""

from typing import Any, Final

from kvtier_common.hints import RETAINED_SHARE
from kvtier_common.version import KVTIER_VERSION
from kvtier_scorer.config.contract import (
    EVENTS_PORT,
    REPLAY_PORT,
    HintPolicy,
    ShareFrom,
    body_limits,
    uploads_bytes,
)
from kvtier_scorer.config.flavors.document import PrefixTier, minor_version, per_tier_config
from kvtier_scorer.config.model import PLUGINS, PickerConfig, PickerInput, UnsupportedVersionError

API_VERSION: Final = "kvtier.dev/v1alpha1"
TESTED_VERSION: Final = KVTIER_VERSION
SCORERS: Final = PLUGINS

_FOLLOWING_EVENTS: Final = {
    # events name blocks by their tokens, which only an engine knows for certain
    "tokenization": {"mode": "Tokenize"},
    "events": {"enabled": True, "port": EVENTS_PORT, "replayPort": REPLAY_PORT},
}


def config(inputs: PickerInput) -> PickerConfig:
    """The configuration for kvtier's own picker; UnsupportedVersionError for another release's."""
    version = inputs.version or TESTED_VERSION
    if minor_version(version) != minor_version(TESTED_VERSION):
        raise UnsupportedVersionError(
            f"kvtier's own picker {version} is not this release's; leave it out or use {TESTED_VERSION}"
        )

    def parameters(tier: PrefixTier) -> dict[str, Any]:
        settings = {"tier": tier.name, "blockSizeTokens": inputs.engine_block_tokens}
        if inputs.max_prefix_tokens is None:
            return settings
        return {**settings, "maxPrefixTokensToMatch": inputs.max_prefix_tokens}

    sections = {**(_FOLLOWING_EVENTS if inputs.kv_events else {}), **_limits(inputs), **_hints(inputs)}
    return per_tier_config(inputs, version, API_VERSION, parameters, sections)


def _limits(inputs: PickerInput) -> dict[str, Any]:
    bodies, limits = inputs.bodies, {}
    if bodies != body_limits(None, None):
        limits = {"maxBodyBytes": bodies.max_bytes, "totalBodyBytes": bodies.total_bytes}
    if inputs.uploads_bytes not in {None, uploads_bytes(bodies.max_bytes)}:
        limits["uploadBytes"] = inputs.uploads_bytes
    return {"limits": limits} if limits else {}


def _hints(inputs: PickerInput) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if inputs.hints is not HintPolicy.ACCEPT:
        said["hints"] = inputs.hints.value
    if inputs.share_from is not ShareFrom.HEADER:
        said["shareFrom"] = inputs.share_from.value
    if inputs.retained != RETAINED_SHARE:
        said["retained"] = inputs.retained
    return said
