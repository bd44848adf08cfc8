"""Where engines publish KV events: engines' arguments and the picker's configuration have to agree on it."""

from typing import Final

EVENTS_PORT: Final = 5557
"""Of the first data-parallel rank; further ranks take the next ones. vLLM's default (config/kv_events.py)."""

REPLAY_PORT: Final = 5657
"""Where events that were missed can be asked for again, counted likewise: a hundred ranks further on."""
BYTES_PER_HELD_BLOCK: Final = 160
"""Of what the picker keeps for each block that a pod's events tell of: a number of 64 bits, its place in a
table, a chain of hashes (153 measured)."""
EVENTS_BYTES: Final = 128 << 20
"""What the picker holds of messages at most: large ones as they come, one of them decoded, replays."""
