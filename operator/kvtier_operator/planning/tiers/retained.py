"""What of a pod's tiers may be retained, and what the resource's prefixes take of it."""

from typing import Final

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.kept import Prefix
from kvtier_operator.planning.base.kept import retained_shares
from kvtier_operator.planning.base.tier_plan import TiersPlan

_CHARACTERS_OF_A_TOKEN: Final = 4
"""Of English text and code, about."""


def retained_tokens(spec: Spec, tiers: TiersPlan) -> int:
    """Tokens of the CPU tier that may be retained."""
    return int(retained_shares(spec)[Tier.CPU] * tiers.cpu.tokens)


def prefix_tokens_about(spec: Spec) -> int:
    """Tokens of all prefixes whose length the resource tells."""
    return sum(tokens_about(prefix) or 0 for prefix in spec.prefixes)


def tokens_about(prefix: Prefix) -> int | None:
    """Tokens of a prefix, of a text about a quarter of its characters; None of what a ConfigMap has."""
    if prefix.tokens is not None:
        return len(prefix.tokens)
    return None if prefix.text is None else -(-len(prefix.text) // _CHARACTERS_OF_A_TOKEN)
