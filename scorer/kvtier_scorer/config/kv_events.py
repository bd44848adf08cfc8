"""Where engines publish KV events: engines' arguments and the picker's configuration have to agree on it."""

from typing import Final

EVENTS_PORT: Final = 5557
"""Of the first data-parallel rank; further ranks take the next ones. vLLM's default (config/kv_events.py)."""

REPLAY_PORT: Final = 5657
"""Where events that were missed can be asked for again, counted likewise: a hundred ranks further on."""
