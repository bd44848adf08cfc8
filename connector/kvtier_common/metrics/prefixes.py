"""Names in an engine's /metrics of what is told of a resource's prefixes, each with label `prefix`."""

from typing import Final

COMPUTED: Final = "kvtier_prefix_computed"
TOKENS: Final = "kvtier_prefix_tokens"
CACHED_TOKENS: Final = "kvtier_prefix_cached_tokens"

ABOUT: Final = {
    COMPUTED: "1 if the prefix was computed when it was asked for last, else 0.",
    TOKENS: "Tokens of the prefix, as the engine counts them.",
    CACHED_TOKENS: "Tokens of the prefix that the engine found in a cache when it was asked for last.",
}
