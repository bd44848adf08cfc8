"""The EndpointPickerConfig as our own picker reads it, before it is known to make sense."""

from typing import Annotated, Any

import msgspec

from kvtier_common.tier import Tier
from kvtier_scorer.config.settings.sections import (
    Affinity,
    Events,
    Limits,
    Metrics,
    Section,
    Shedding,
    Tokenization,
)
from kvtier_scorer.config.settings.strict_fields import field_error

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
Whole = Annotated[int, msgspec.Meta(ge=1, le=1 << 48)]


class PluginEntry(Section, frozen=True, kw_only=True):
    """One of `plugins`; its name is its type where left out."""

    type: Name
    name: Name | None = None
    parameters: dict[str, Any] | None = None

    @property
    def reference(self) -> str:
        """What a profile calls it."""
        return self.name or self.type


class Reference(Section, frozen=True, kw_only=True):
    """One plugin of a profile."""

    plugin_ref: Name
    weight: float | None = None


class Profile(Section, frozen=True, kw_only=True):
    """One of `schedulingProfiles`."""

    name: Name
    plugins: Annotated[tuple[Reference, ...], msgspec.Meta(min_length=1)]


class Document(Section, frozen=True, kw_only=True):
    """The whole document."""

    api_version: str
    kind: str
    plugins: Annotated[tuple[PluginEntry, ...], msgspec.Meta(min_length=1)]
    scheduling_profiles: tuple[Profile, ...]
    affinity: Affinity = Affinity()
    shedding: Shedding = Shedding()
    metrics: Metrics = Metrics()
    events: Events = Events()
    tokenization: Tokenization = Tokenization()
    limits: Limits = Limits()


class NoParameters(Section, frozen=True, kw_only=True):
    """The parameters of a plugin that takes none."""


class MaxScoreParameters(Section, frozen=True, kw_only=True):
    """The parameters of `max-score-picker`: this picker names one endpoint."""

    max_num_of_endpoints: Annotated[int, msgspec.Meta(ge=1, le=1)] = 1


class PrefixParameters(Section, frozen=True, kw_only=True):
    """The parameters of `prefix-cache-scorer`.

    Attributes:
        tier: Whose content the scorer knows.
        block_size_tokens: Tokens in one block of the engine, one entry of the index.
        lru_capacity_per_server: Entries a pod; left out where the engine has to be asked.
        max_prefix_tokens_to_match: What of a longer prompt is looked at.
    """

    tier: str
    block_size_tokens: Whole
    lru_capacity_per_server: Whole | None = None
    max_prefix_tokens_to_match: Whole | None = None

    def check(self, path: str) -> None:
        """The tier must be one that there is.

        Raises:
            PickerConfigError: It is none.
        """
        names = [tier.label for tier in Tier]
        if self.tier not in names:
            raise field_error(f"{path}.tier", f"must be {' or '.join(names)}, not {self.tier!r}")
