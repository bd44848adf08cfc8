"""The settings of an entry of vLLM's `secondary_tiers`, read strictly, and errors in its words."""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from math import inf
from typing import Any, Final

from kvtier_connector.config import ConnectorConfig
from kvtier_connector.errors import ConnectorError, SettingError

_NOT_OURS: Final = frozenset({"type", "module_path", "backpressure"})
"""Keys of an entry that vLLM reads itself."""
_CONNECTORS_NAMES: Final = re.compile(r"(?:kv_connector_extra_config\.)?\b(?:disk|remote)_([a-z_]+)\b")
_REMOTE: Final = "remote_"
_NO_CHOICE: Final = frozenset({"break_even", "weights_read"})
"""vLLM's tiering asks no tier whether reading pays, and does not say where a model's weights are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSettings:
    """What an entry of the disk tier says."""

    path: str  # folder of the tier, which one engine has at a time
    capacity_bytes: int  # what its files take, a hard bound; taken at once
    direct_io: bool = True  # pass by the page cache, where the file system can
    write_bytes_per_hour: int = 0  # bound on the disk's wear; 0 for none
    timeout_s: float = 5.0  # A disk that needs longer for one chunk is given up until it answers again
    # any text; chunks that were stored under another are not found. For what vLLM does not tell its tiers:
    # see `tier_fingerprint`.
    namespace: str = ""


def entry_path(entries: object, settings: Mapping[str, object]) -> str:
    """Return the field path of the entry that has these settings."""
    if isinstance(entries, list):
        for place, entry in enumerate(entries):
            if {name: value for name, value in entry.items() if name not in _NOT_OURS} == settings:
                return f"secondary_tiers[{place}]"
    return "secondary_tiers[]"


def parse_disk(settings: Mapping[str, object], entry: str) -> DiskSettings:
    """Read the settings of a disk tier.

    Raises SettingError: a setting is unknown, missing or bad; the message names it and says what would do.
    """
    known = {setting.name: setting.default for setting in fields(DiskSettings)}
    needed = [name for name, default in known.items() if default is MISSING]
    _check_names(settings, entry, known, needed, "a disk tier needs a folder and a size")
    for name, value in settings.items():
        _check(f"{entry}.{name}", name, value)
    return DiskSettings(**settings)  # type: ignore[arg-type] # checked above


def parse_remote(settings: Mapping[str, object], entry: str) -> tuple[ConnectorConfig, str]:
    """Read the settings of a remote tier, the connector's without `remote_`; returns them and the namespace.

    Raises SettingError: a setting is unknown, missing or bad; the message names it and says what would do.
    """
    names = [setting.name for setting in fields(ConnectorConfig) if setting.name.startswith(_REMOTE)]
    ours = {name.removeprefix(_REMOTE) for name in names} - _NO_CHOICE
    needed = ("url", "share", "capacity_bytes")
    _check_names(
        settings, entry, {*ours, "namespace"}, needed, "a remote tier needs a URL, a share and a size"
    )
    connectors: dict[str, Any] = {f"{_REMOTE}{name}": settings[name] for name in ours & settings.keys()}
    namespace = settings.get("namespace", "")
    _check(f"{entry}.namespace", "namespace", namespace)
    with rename_errors(entry):
        return ConnectorConfig(cpu_capacity_bytes=1, remote_break_even=False, **connectors), str(namespace)


@contextmanager
def rename_errors(entry: str) -> Iterator[None]:
    """Say a tier's errors with the names that the settings have in this entry."""
    try:
        yield
    except ConnectorError as error:
        message = renamed(str(error), entry)
        raise type(error)(message if entry in message else f"{entry}: {message}") from error


def renamed(message: str, entry: str) -> str:
    """Return what a tier says with the names that the settings have in this entry."""
    return _CONNECTORS_NAMES.sub(rf"{entry}.\1", message)


def _check_names(
    settings: Mapping[str, object], entry: str, known: Collection[str], needed: Collection[str], why: str
) -> None:
    for name in sorted(settings.keys() - set(known)):
        raise SettingError(f"{entry}.{name}: unknown setting; known are {', '.join(sorted(known))}")
    for name in needed:
        if name not in settings:
            raise SettingError(f"{entry}.{name}: missing; {why}")


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
