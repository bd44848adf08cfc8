"""What was found when a store was looked at, for people."""

from dataclasses import dataclass

from kvtier_common.string_enum import StrEnum


class Level(StrEnum):
    """How much a finding matters."""

    GOOD = "good"
    NOTE = "note"  # could not be told
    WARN = "warn"  # works, and not as it should
    BAD = "bad"  # does not work


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, in one line."""

    level: Level
    line: str
    setting: str = ""  # of the connector, that it is about, such as `remote_url`
