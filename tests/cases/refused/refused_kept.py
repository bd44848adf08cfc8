"""KVCacheTiers that say wrongly what is to stay: times, parts, tenants and prefixes."""

from typing import Final

from tests.cases.refused.refused_case import Refused
from tests.cases.rules.attach_rules import ATTACH

_PREFIX: Final = {"name": "tools", "text": "You have these tools."}
_FILE: Final = "; put it into a ConfigMap and name that in fromConfigMap"


def _most(value: object) -> dict[str, object]:
    return {"spec.tiers.cpu": {"capacity": "1Gi", "retained": {"most": value}}}


def _tenant(**fields: object) -> dict[str, object]:
    return {"spec.tenants": [{"name": "search", **fields}]}


REFUSED_KEPT: Final = {
    "a time as a number": Refused(
        {"spec.prefixes": [{**_PREFIX, "retain": 300}]},
        "spec.prefixes[0].retain: expected text, not the number 300; write 300s",
    ),
    "a time of several units": Refused(
        {"spec.prefixes": [{**_PREFIX, "retain": "1h30m0s"}]},
        "spec.prefixes[0].retain: '1h30m0s' is not a duration; write a whole number with s, m or h, such as "
        "90s, 30m or 1h",
    ),
    "a part as a number": Refused(
        _tenant(guaranteed=20),
        "spec.tenants[0].guaranteed: expected text, not the number 20; write 20%",
    ),
    "a part of 1": Refused(
        _most(0.4), "spec.tiers.cpu.retained.most: expected text, not the number 0.4; write 40%"
    ),
    "a part that is more than may be": Refused(
        _most(95),
        "spec.tiers.cpu.retained.most: expected text, not the number 95; it must be a whole percentage from "
        "0% to 90%: the rest is for whatever comes",
    ),
    "a part with a fraction": Refused(
        _most("33.5%"),
        "spec.tiers.cpu.retained.most: '33.5%' is not a whole percentage from 0% to 90%: the rest is for "
        "whatever comes",
    ),
    "more than all": Refused(
        _tenant(most="120%"), "spec.tenants[0].most: '120%' is not a whole percentage from 0% to 100%"
    ),
    "a name that numbers could be": Refused(
        {"spec.prefixes": [{**_PREFIX, "name": 5}]},
        'spec.prefixes[0].name: expected text, not the number 5; quote it: "5"',
    ),
    "a tenant with a space": Refused(
        {"spec.tenants": [{"name": "my team"}]},
        "spec.tenants[0].name: 'my team' is not a valid label value; write letters, digits and - _ ., with a "
        "letter or a digit at both ends",
    ),
    "a text that a resource has no room for": Refused(
        {"spec.prefixes": [{**_PREFIX, "text": "x" * 32769}]},
        f"spec.prefixes[0].text: must have at most 32768 characters, not 32769{_FILE}",
    ),
    "as many tokens": Refused(
        {"spec.prefixes": [{"name": "tools", "tokens": [7] * 8193}]},
        f"spec.prefixes[0].tokens: must have at most 8192 entries, not 8193{_FILE}",
    ),
    "what is below a field that has to go": Refused(
        {
            **ATTACH,
            "spec.prefixes": [{**_PREFIX, "tokens": [1]}],
            "spec.engine": {"rollout": {"warmStart": "1h"}},
        },
        "spec.prefixes: prefixes are computed by an argument of vLLM's, and attach leaves the command to its "
        "owner: remove prefixes\n"
        "spec.engine: with attach vLLM runs as its owner says, in their pod: remove engine",
    ),
}
