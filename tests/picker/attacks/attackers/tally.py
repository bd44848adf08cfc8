"""What became of an attacker."""

from collections import Counter
from typing import Final, TypeAlias

Tally: TypeAlias = Counter[str]
"""How often something happened to the attacker: what it sent, and how that ended."""

OPEN: Final = "open"
HELD: Final = "held"
SENT: Final = "sent"
ASKED: Final = "asked"
ANSWERED: Final = "answered"
_NO_END: Final = frozenset({OPEN, HELD, SENT, ASKED, ANSWERED})
_FAULTS: Final = frozenset({"500", "INTERNAL", "UNKNOWN"})


def faults(tally: Tally) -> int:
    """How often the server said that something had gone wrong in it."""
    return sum(tally[fault] for fault in _FAULTS)


def cut_off(tally: Tally) -> int:
    """How often the attacker was refused, reset, told to go, or its connection closed."""
    return sum(count for kind, count in tally.items() if kind not in _NO_END | _FAULTS)
