"""The configuration of a resource's model as far as it was found."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FoundModelConfig:
    """The model's configuration for one generation of a resource, or why there is none.

    Attributes:
        generation: Generation of the resource.
        config: The config.json, compact; empty where it is not needed or was not found.
        source: Where it came from, for people.
        missing: Why it was not found.
        retry: Whether it may be found later without a change of the resource.
        from_config_map: Whether it comes from a ConfigMap, which may be corrected.
    """

    generation: int
    config: str = ""
    source: str = ""
    missing: str = ""
    retry: bool = False
    from_config_map: bool = False

    @property
    def parsed(self) -> Mapping[str, Any] | None:
        """The configuration; None without one."""
        if not self.config:
            return None
        config: Mapping[str, Any] = json.loads(self.config)
        return config
