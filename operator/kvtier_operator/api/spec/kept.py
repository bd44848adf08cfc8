"""What is to stay in the tiers when room is needed: `retained` of a tier, `spec.prefixes` and `spec.tenants`."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Final

from pydantic import Field

from kvtier_common.hints import MOST_RETAIN_S
from kvtier_common.metrics.hints import OTHER
from kvtier_operator.api.base import ApiModel, Rule, rule
from kvtier_operator.api.formats import (
    LABEL_VALUE_PATTERN,
    RETAINED_PATTERN,
    DnsLabel,
    DnsSubdomain,
    Duration,
    Percentage,
    seconds_of,
    share_of,
)
from kvtier_operator.api.spec.tiers import Ability, backends_with, one_of

MOST_PREFIXES: Final = 16
MOST_TENANTS: Final = 64
_MOST_TOKENS: Final = 8192
_LEAST_RETAIN_S: Final = 10
_MOST_CHARACTERS: Final = 32768
CONFIG_KEY_PATTERN: Final = "^[-_a-zA-Z0-9][-._a-zA-Z0-9]*$"


class Retained(ApiModel):
    """How much of a tier may hold blocks that somebody asked to retain."""

    most: Annotated[str, Field(max_length=3, pattern=RETAINED_PATTERN)] = Field(
        description="Part of the tier, 0% to 90%. What is asked for beyond it is kept as any other block is, and counted.",
    )


class PrefixFile(ApiModel):
    """A file in a ConfigMap of the resource's namespace."""

    name: DnsSubdomain = Field(description="Name of the ConfigMap.")
    key: str = Field(
        description="Its key with the file.", min_length=1, max_length=253, pattern=CONFIG_KEY_PATTERN
    )


class Prefix(ApiModel):
    """The beginning of many prompts, such as a system prompt with the descriptions of tools."""

    name: DnsLabel = Field(description="What status and metrics call it.")
    text: str | None = Field(
        None,
        description="As the engine sees it, after the model's chat template; it is tokenized there. At most 32,768 characters; a longer one goes into a ConfigMap.",
        min_length=1,
        max_length=_MOST_CHARACTERS,
    )
    tokens: list[Annotated[int, Field(ge=0, le=2**31 - 1)]] | None = Field(
        None,
        description="The same as numbers of tokens, at most 8,192; more go into a ConfigMap.",
        min_length=1,
        max_length=_MOST_TOKENS,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    from_config_map: PrefixFile | None = Field(
        None,
        description="A file in a ConfigMap: text, or a JSON object with text, tokens, or messages and tools of a chat, which the engine puts into the model's template; beside them retain (such as 24h), cache_salt, model, name. Pods wait for one that is not there.",
    )
    retain: Duration | None = Field(
        None,
        description="How long it is kept before others after it was asked for last, 10s to 24h; engines ask for it again before that ends. 1h when empty.",
    )

    @rule(
        "[has(self.text), has(self.tokens), has(self.fromConfigMap)].filter(each, each).size() == 1",
        "give exactly one of text, tokens, fromConfigMap",
    )
    def has_one_source(self) -> bool:
        """Two beginnings of one name could differ."""
        return [self.text, self.tokens, self.from_config_map].count(None) == 2  # noqa: PLR2004 - of three

    @rule(
        "!has(self.retain) || (duration(self.retain) >= duration('10s') && duration(self.retain) <= duration('24h'))",
        "a prefix is retained for 10s at least and for a day at most: write 10s to 24h",
        field=".retain",
    )
    def is_for_a_day_at_most(self) -> bool:
        """What engines take of a hint (kvtier_common.hints), and how often they ask again."""
        return self.retain is None or _LEAST_RETAIN_S <= seconds_of(self.retain) <= MOST_RETAIN_S

    @rule(
        "!has(self.retain) || !has(self.fromConfigMap)",
        "a file of a ConfigMap says itself how long it is kept, by its own retain: remove retain",
        field=".retain",
    )
    def one_says_how_long(self) -> bool:
        """Nobody but the engine reads the file."""
        return self.retain is None or self.from_config_map is None


class Tenant(ApiModel):
    """Who shares the engines with others, and which part of each tier is theirs."""

    name: str = Field(
        description="The hint `share` of their requests, or what their cache_salt has before its first colon.",
        min_length=1,
        max_length=63,
        pattern=LABEL_VALUE_PATTERN,
    )
    guaranteed: Percentage = Field(
        "0%",
        description="Part of each tier of a pod that others' requests do not take from them. While they do not use it, others may.",
    )
    most: Percentage = Field(
        "100%",
        description="Part of each tier above which their own blocks are the first to leave when room is needed.",
    )

    @rule(
        f"self.name != '{OTHER}'",
        f"metrics call everybody who is no tenant {OTHER}: choose another name",
        field=".name",
    )
    def is_told_from_others(self) -> bool:
        """Two would be one in metrics."""
        return self.name != OTHER

    @rule(
        "int(self.guaranteed.replace('%', '')) <= int(self.most.replace('%', ''))",
        "guaranteed is more than most: lower it, or raise most",
        field=".guaranteed",
    )
    def guarantee_within_most(self) -> bool:
        """What is guaranteed would leave first."""
        return share_of(self.guaranteed) <= share_of(self.most)


def _needs_ability(field: str, unused: str, does: str, is_used: Callable[[Any], bool]) -> Rule:
    able = backends_with(Ability.KEEPS)
    return Rule(
        " || ".join((unused, *(f"self.backend == '{backend}'" for backend in able))),
        f"only backend {one_of(able)} {does}; remove {field.rpartition('.')[2]}",
        f".{field}",
        lambda spec: not is_used(spec) or Ability.KEEPS in spec.backend.abilities,
        removes_field=True,
    )


@cache
def kept_rules() -> tuple[Rule, ...]:
    """What of it needs a backend that knows it, and an engine of the resource's own, as rules of the whole spec."""
    return (
        _needs_ability(
            "prefixes",
            "!has(self.prefixes) || size(self.prefixes) == 0",
            "keeps prefixes before others",
            lambda spec: bool(spec.prefixes),
        ),
        _needs_ability(
            "tenants",
            "!has(self.tenants) || size(self.tenants) == 0",
            "shares its tiers among tenants",
            lambda spec: bool(spec.tenants),
        ),
        _needs_ability(
            "engine.rollout.warmStart",
            "!has(self.engine.rollout.warmStart)",
            "is warm again when an engine starts",
            lambda spec: spec.engine.rollout.warm_start is not None,
        ),
        Rule(
            "!has(self.attach) || !has(self.prefixes) || size(self.prefixes) == 0",
            "prefixes are computed by an argument of vLLM's, and attach leaves the command to its owner: remove prefixes",
            ".prefixes",
            lambda spec: spec.attach is None or not spec.prefixes,
            removes_field=True,
        ),
    )
