"""One CEL rule of the CRD, as tests hold it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RuleCase:
    """One CEL rule: its message, where it is said, and changes that it accepts and refuses."""

    message: str
    field: str
    accepted: Mapping[str, object]
    refused: Mapping[str, object]
    said: str = ""  # what Python says of the refused one, where that is not the message
