"""What is known of the configuration of one resource's model."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FoundModelConfig:
    """What is known of the model of one generation of a resource.

    Attributes:
        generation: Which.
        config: Its config.json, compact; empty where it is not needed or could not be had.
        source: Where it came from, for people.
        missing: Why it could not be had.
        look_again: Whether it may be had later without a change of the resource.
        of_config_map: Whether it stands in a ConfigMap, which may be corrected.
    """

    generation: int
    config: str = ""
    source: str = ""
    missing: str = ""
    look_again: bool = False
    of_config_map: bool = False

    @property
    def parsed(self) -> Mapping[str, Any] | None:
        """The configuration; None without one."""
        if not self.config:
            return None
        config: Mapping[str, Any] = json.loads(self.config)
        return config
