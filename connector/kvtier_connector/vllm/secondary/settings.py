"""The settings of our disk tier as an entry of vLLM's own `secondary_tiers`."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from math import inf
from typing import Final

from kvtier_connector.errors import ConnectorError, SettingError

_NOT_OURS: Final = frozenset({"type", "module_path", "backpressure"})
"""Keys of an entry that vLLM reads itself."""
_CONNECTORS_NAMES: Final = re.compile(r"\bdisk_(path|capacity_bytes)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondarySettings:
    """What one entry says.

    Attributes:
        path: Folder of the tier, which one engine has at a time.
        capacity_bytes: What its files take, a hard bound; taken at once.
        direct_io: Pass by the page cache, where the file system can.
        write_bytes_per_hour: Bound on the disk's wear; 0 for none.
        timeout_s: A disk that needs longer for one chunk is given up until it answers again.
        namespace: Any text; chunks that were stored under another are not found. For what vLLM does not tell
            its tiers: see secondary/fingerprint.py.
    """

    path: str
    capacity_bytes: int
    direct_io: bool = True
    write_bytes_per_hour: int = 0
    timeout_s: float = 5.0
    namespace: str = ""


def entry_path(entries: object, settings: Mapping[str, object]) -> str:
    """Return the field path of the entry that has these settings."""
    if isinstance(entries, list):
        for place, entry in enumerate(entries):
            if {name: value for name, value in entry.items() if name not in _NOT_OURS} == settings:
                return f"secondary_tiers[{place}]"
    return "secondary_tiers[]"


def parse(settings: Mapping[str, object], entry: str) -> SecondarySettings:
    """Read an entry's settings strictly.

    Args:
        settings: By name, without those that vLLM reads itself.
        entry: Its field path.

    Raises:
        SettingError: A setting is unknown, missing or bad; the message names it and says what would do.
    """
    known = [field.name for field in fields(SecondarySettings)]
    for name in sorted(settings.keys() - set(known)):
        raise SettingError(f"{entry}.{name}: unknown setting; known are {', '.join(sorted(known))}")
    for field in fields(SecondarySettings):
        if field.default is MISSING and field.name not in settings:
            raise SettingError(f"{entry}.{field.name}: missing; a disk tier needs a folder and a size")
        if field.name in settings:
            _check(f"{entry}.{field.name}", field.name, settings[field.name])
    return SecondarySettings(**settings)  # type: ignore[arg-type] # checked above


@contextmanager
def errors_named(entry: str) -> Iterator[None]:
    """Say the disk tier's errors with the names that the settings have in this entry."""
    try:
        yield
    except ConnectorError as error:
        message = _CONNECTORS_NAMES.sub(rf"{entry}.\1", str(error))
        raise type(error)(message if entry in message else f"{entry}: {message}") from error


def _check(place: str, name: str, value: object) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    whole = number and isinstance(value, int)
    fits, wanted = {
        "path": (isinstance(value, str) and value.startswith("/"), "the absolute path of a folder"),
        "capacity_bytes": (whole and value > 0, "a whole number, 1 or more"),  # type: ignore[operator]
        "direct_io": (isinstance(value, bool), "true or false"),
        "write_bytes_per_hour": (whole and value >= 0, "a whole number, 0 or more"),  # type: ignore[operator]
        "timeout_s": (number and 0 < value < inf, "seconds, more than 0"),  # type: ignore[operator]
        "namespace": (isinstance(value, str), "a text"),
    }[name]
    if not fits:
        raise SettingError(f"{place}: got {value!r}, must be {wanted}")
