"""The rules of what stays when room is needed: retained, prefixes, tenants, hints, warm start."""

from typing import Final

from tests.cases.kvcachetier import DISK
from tests.cases.rules.attach_rules import ATTACH
from tests.cases.rules.rule_case import RuleCase

_PREFIX: Final = {"name": "tools", "text": "You have these tools."}
_RETAINED: Final = {"retained": {"most": "40%"}}
_GATEWAY: Final = {"provider": "standalone", "standalone": {"apiKeys": {"secretName": "clients"}}}
_TENANTS: Final = [{"name": "a", "guaranteed": "60%"}, {"name": "b", "guaranteed": "40%"}]
KEPT_RULES: Final = (
    RuleCase(
        "give exactly one of text, tokens, fromConfigMap",
        "spec.prefixes[0]",
        {"spec.prefixes": [{"name": "tools", "fromConfigMap": {"name": "prompts", "key": "tools.txt"}}]},
        {"spec.prefixes": [{**_PREFIX, "tokens": [1]}]},
    ),
    RuleCase(
        "a prefix is retained for 10s at least and for a day at most: write 10s to 24h",
        "spec.prefixes[0].retain",
        {"spec.prefixes": [{**_PREFIX, "retain": "1440m"}]},
        {"spec.prefixes": [{**_PREFIX, "retain": "25h"}]},
    ),
    RuleCase(
        "a file of a ConfigMap says itself how long it is kept, by its own retain: remove retain",
        "spec.prefixes[0].retain",
        {"spec.prefixes": [{**_PREFIX, "retain": "10s"}]},
        {
            "spec.prefixes": [
                {"name": "tools", "fromConfigMap": {"name": "prompts", "key": "tools.json"}, "retain": "1h"}
            ]
        },
    ),
    RuleCase(
        "an engine that is started waits for more than 30m: write less",
        "spec.prefixesWithin",
        {"spec.prefixes": [_PREFIX], "spec.prefixesWithin": "30m"},
        {"spec.prefixes": [_PREFIX], "spec.prefixesWithin": "1h"},
    ),
    RuleCase(
        "prefixesWithin bounds the time that prefixes take: give some, or leave it out",
        "spec.prefixesWithin",
        {"spec.prefixes": [_PREFIX], "spec.prefixesWithin": "0s"},
        {"spec.prefixesWithin": "10s"},
    ),
    RuleCase(
        "metrics call everybody who is no tenant other: choose another name",
        "spec.tenants[0].name",
        {"spec.tenants": [{"name": "others"}]},
        {"spec.tenants": [{"name": "other"}]},
    ),
    RuleCase(
        "guaranteed is more than most: lower it, or raise most",
        "spec.tenants[0].guaranteed",
        {"spec.tenants": [{"name": "a", "guaranteed": "50%", "most": "50%"}]},
        {"spec.tenants": [{"name": "a", "guaranteed": "51%", "most": "50%"}]},
    ),
    RuleCase(
        "more than 100% is guaranteed to all tenants together: lower some",
        "spec.tenants",
        {"spec.tenants": _TENANTS},
        {"spec.tenants": [*_TENANTS, {"name": "c", "guaranteed": "1%"}]},
        "more than 100% is guaranteed (60% + 40% + 1% = 101%): lower some",
    ),
    RuleCase(
        "only backend KVTier keeps prefixes before others; remove prefixes",
        "spec.prefixes",
        {"spec.prefixes": [_PREFIX]},
        {"spec.backend": "LMCache", "spec.prefixes": [_PREFIX]},
    ),
    RuleCase(
        "only backend KVTier shares its tiers among tenants; remove tenants",
        "spec.tenants",
        {"spec.tenants": _TENANTS},
        {"spec.backend": "Native", "spec.tenants": _TENANTS},
    ),
    RuleCase(
        "only backend KVTier retains what requests ask for; remove retained",
        "spec.tiers.cpu.retained",
        {"spec.tiers.cpu": {"capacity": "1Gi", **_RETAINED}},
        {"spec.backend": "LMCacheMP", "spec.tiers.cpu": {"capacity": "1Gi", **_RETAINED}},
    ),
    RuleCase(
        "only backend KVTier retains what requests ask for; remove retained",
        "spec.tiers.disk.retained",
        {"spec.tiers.disk": {**DISK, **_RETAINED}},
        {"spec.backend": "LMCache", "spec.tiers.disk": {**DISK, **_RETAINED}},
    ),
    RuleCase(
        "only backend KVTier is warm again when an engine starts; remove warmStart",
        "spec.engine.rollout.warmStart",
        {"spec.engine.rollout": {"warmStart": "0s"}},
        {"spec.backend": "LMCache", "spec.engine.rollout": {"warmStart": "5s"}},
    ),
    RuleCase(
        "an engine that is started waits for more than 10m: write less",
        "spec.engine.rollout.warmStart",
        {"spec.engine.rollout": {"warmStart": "10m"}},
        {"spec.engine.rollout": {"warmStart": "601s"}},
    ),
    RuleCase(
        "prefixes are computed by an argument of vLLM's, and attach leaves the command to its owner: "
        "remove prefixes",
        "spec.prefixes",
        {**ATTACH, "spec.tenants": _TENANTS},
        {**ATTACH, "spec.prefixes": [_PREFIX]},
    ),
    RuleCase(
        "only kvtier's own picker looks at hints; set flavor to builtin or leave hints out",
        "spec.router.hints",
        {"spec.router": {"flavor": "builtin", "hints": "Refuse"}},
        {"spec.router": {"flavor": "llm-d", "hints": "Headers"}},
    ),
    RuleCase(
        "a client has a name by its key alone, which kvtier's own picker and gateway tell: set flavor to "
        "builtin and gateway.standalone.apiKeys, or leave shareFrom out",
        "spec.router.shareFrom",
        {"spec.router": {"flavor": "builtin", "shareFrom": "Client", "gateway": _GATEWAY}},
        {"spec.router": {"flavor": "builtin", "shareFrom": "Client"}},
    ),
)
