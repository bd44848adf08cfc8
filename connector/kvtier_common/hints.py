"""What a request may say of its prompt's blocks: opinions, which never make a request fail.

In a request's body they are `kv_transfer_params: {"kvtier": {"retain": 300, "priority": "high"}}`, vLLM's own
way to a connector; as headers, which a gateway translates, `X-KVTier-Retain: 300`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

FIELD: Final = "kvtier"
"""Of a request's `kv_transfer_params`: the object with its hints."""
HEADER_PREFIX: Final = "x-kvtier-"
MOST_RETAIN_S: Final = 24 * 3600
MOST_TENANT_CHARACTERS: Final = 63
RETAINED_SHARE: Final = 0.3
"""Of a tier, what hints may hold if nothing else is said."""
NOBODY: Final = "-"
"""As `share`: the blocks are nobody's, whatever else a request says. No tenant can have that name."""
MOST_UNKNOWN: Final = 16
"""Names of one request that are told of one by one; what has more is counted as one more."""


class Priority(IntEnum):
    """Which blocks leave first: low ones do, high ones last. Most have none of the two."""

    LOW = 0
    NORMAL = 1
    HIGH = 2


@dataclass(frozen=True, slots=True)
class Hints:
    """What one request says."""

    retain_s: float = 0.0  # for how long after its end the prompt's blocks are likely to be used again
    priority: Priority = Priority.NORMAL
    tenant: str = ""  # whose share of the tiers the blocks are; empty for nobody's
    never_store: bool = False  # the blocks never leave the device
    prefetch: bool = False  # have the blocks brought to memory, and compute nothing

    def to_params(self) -> dict[str, Any]:
        """Return what goes into `kv_transfer_params` under FIELD: what differs from no hint."""
        params: dict[str, Any] = {}
        if self.retain_s:
            params["retain"] = self.retain_s
        if self.priority is not Priority.NORMAL:
            params["priority"] = self.priority.name.lower()
        if self.tenant:
            params["share"] = self.tenant
        if self.never_store:
            params["nostore"] = True
        if self.prefetch:
            params["prefetch"] = True
        return params


NO_HINTS: Final = Hints()
_UNKNOWN: Final = "an unknown hint"


def parse_hints(value: object) -> tuple[Hints, list[str]]:
    """Read what stands under FIELD. Returns what was understood, and a line for each part that was not.

    It takes no longer for an object of many names: the known ones are looked up, and the others counted.
    """
    if not isinstance(value, Mapping):
        return NO_HINTS, [f"kv_transfer_params.{FIELD}: must be an object with any of {', '.join(NAMES)}"]
    problems: list[str] = []
    understood: dict[str, Any] = {}
    names = [name for name in NAMES if name in value]
    for name in names:
        field, read, wanted = _READERS[name]
        if (read_value := read(value[name])) is None:
            problems.append(f"{name}: must be {wanted}")
        else:
            understood[field] = read_value
    unknown = min(len(value) - len(names), MOST_UNKNOWN + 1)
    problems += [f"{_UNKNOWN}; known are {', '.join(NAMES)}"] * unknown
    return Hints(**understood), problems


def _retain(said: object) -> float | None:
    is_number = isinstance(said, int | float) and not isinstance(said, bool)
    return float(said) if is_number and 0 <= said <= MOST_RETAIN_S else None  # type: ignore[operator, arg-type]


def _priority(said: object) -> Priority | None:
    return Priority.__members__.get(said.upper()) if isinstance(said, str) else None


def _tenant(said: object) -> str | None:
    return said if isinstance(said, str) and 0 < len(said) <= MOST_TENANT_CHARACTERS else None


def _switch(said: object) -> bool | None:
    return said if isinstance(said, bool) else None


_READERS: Final[Mapping[str, tuple[str, Callable[[object], Any], str]]] = {
    "retain": ("retain_s", _retain, f"0 to {MOST_RETAIN_S} seconds"),
    "priority": ("priority", _priority, "low, normal or high"),
    "share": ("tenant", _tenant, f"a tenant's name of 1 to {MOST_TENANT_CHARACTERS} characters"),
    "nostore": ("never_store", _switch, "true or false"),
    "prefetch": ("prefetch", _switch, "true or false"),
}
"""By a hint's name: the field that it fills, what reads it, and what it must be."""
NAMES: Final = tuple(_READERS)
"""Of hints, in a body; a header's is HEADER_PREFIX and one of these."""
HEADERS: Final = tuple(HEADER_PREFIX + name for name in NAMES)
"""Of hints, in lower case."""
REASONS: Final = (*NAMES, "unknown", "form")
"""Why a hint is not understood: the one whose value is bad, or that its name is unknown, or no object."""


def reason_of(problem: str) -> str:
    """Return which of REASONS a line of `parse_hints` is for."""
    if problem.startswith(_UNKNOWN):
        return "unknown"
    name = problem.partition(":")[0]
    return name if name in NAMES else "form"


_SWITCHES: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}
"""What a header says of a switch."""


def read_headers(headers: Mapping[str, str]) -> tuple[Hints, list[str]]:
    """Read the hints among a request's headers, whose names are in lower case."""
    texts = {
        name.removeprefix(HEADER_PREFIX): text
        for name, text in headers.items()
        if name.startswith(HEADER_PREFIX)
    }
    return parse_hints({name: _from_text(name, text) for name, text in texts.items()})


def _from_text(name: str, text: str) -> object:
    if name == "retain":
        try:
            return float(text)
        except ValueError:
            return text
    if name in {"nostore", "prefetch"}:
        return _SWITCHES.get(text.strip().lower(), text)
    return text
