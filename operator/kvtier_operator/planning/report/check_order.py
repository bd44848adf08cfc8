"""The order of checks in a report: a reader who reads one should have read what matters most."""

from collections.abc import Iterable
from typing import Final

from kvtier_operator.planning.verdict import CheckResult, Outcome

FIRST: Final = (
    # the tiers bring nothing
    "TierDoesNotPay",
    "TierAddsNothing",
    "PrefixCachingOff",
    # engines may not start or may end, requests may fail or get what is another's
    "SequenceMayNotFit",
    "CacheDtypeNeedsGPU",
    "ConnectorMayNotBeInImage",
    "VersionNotTested",
    "PinningMayFail",
    "DeviceNotTested",
    "OneEngineOfANode",
    "StepMayBeBelowBlock",
    "ChunkMayNotBeBlocks",
    "WeightsUnknown",
    "AdaptersNotPlanned",
    "StorageBelowWeights",
    "GatewayWithoutPools",
    "GatewayMayBeShutOut",
    "AdaptersShareKeys",
    "BlockHashNotCryptographic",
    "GatewayMemoryShort",
    "PickerMemoryShort",
)
"""Reasons of warnings before all others, the heaviest first. The others cost speed, tokens or hits."""

LAST: Final = (
    "UnplannedVariable",
    "HostPathNotAccounted",
    "PickerMemoryLarge",
    "ModelVolumeUnused",
    "MemlockNotVerified",
    "InProcessDeprecated",
    "QuotaNotCounted",
    "NamespaceNotSeen",
)
"""Those after all others, which cost nothing."""

_OUTCOMES: Final = (Outcome.REJECT, Outcome.WARN, Outcome.PASS)
_PLACES: Final = {reason: place - len(FIRST) for place, reason in enumerate(FIRST)} | {
    reason: place + 1 for place, reason in enumerate(LAST)
}


def most_important_first(checks: Iterable[CheckResult]) -> list[CheckResult]:
    """Refusals, then warnings by what they cost, then what passed; otherwise in the order given."""
    return sorted(checks, key=lambda check: (_OUTCOMES.index(check.outcome), _PLACES.get(check.reason, 0)))
