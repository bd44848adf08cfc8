"""The rules of spec.tiers.remote."""

from typing import Final

from tests.cases.kvcachetier import REMOTE
from tests.cases.rules.rule_case import RuleCase

_CA: Final = {"caSecretRef": {"name": "store-ca"}}
_TLS_OFF: Final = (
    "tls needs a URL that turns TLS on, or managed.tls: begin the URL, or a bucket's endpoint, with "
    "rediss://, valkeys:// or https://, or remove tls"
)
_CERTIFICATE: Final = {"tls": {"secretName": "store-certificate"}}
REMOTE_RULES: Final = (
    RuleCase(
        "give either the store's url, or managed for one that kvtier makes",
        "spec.tiers.remote.url",
        {"spec.tiers.remote": {"capacity": "1Ti", "managed": {"memory": "300Gi", "shards": 4}}},
        {"spec.tiers.remote": {"capacity": "1Ti"}},
    ),
    RuleCase(
        "managed makes Valkeys, which engine Redis speaks to: remove engine, or give the url of a Mooncake "
        "master in place of managed",
        "spec.tiers.remote.engine",
        {"spec.tiers.remote": {"capacity": "1Ti", "managed": {}}},
        {"spec.tiers.remote": {"capacity": "1Ti", "engine": "Mooncake", "managed": {}}},
    ),
    RuleCase(
        "the URL is of another engine: mooncake:// is of engine Mooncake, all others are of engine Redis",
        "spec.tiers.remote.url",
        {"spec.tiers.remote": {**REMOTE, "engine": "Mooncake", "url": "mooncake://master.kv:50051"}},
        {"spec.tiers.remote": {**REMOTE, "engine": "Mooncake"}},
    ),
    RuleCase(
        "the URL is of another engine: mooncake:// is of engine Mooncake, all others are of engine Redis",
        "spec.tiers.remote.url",
        {"spec.tiers.remote": {**REMOTE, "url": "s3://kv-cache/qwen3"}},
        {"spec.tiers.remote": {**REMOTE, "url": "mooncake://master.kv:50051"}},
    ),
    RuleCase(
        _TLS_OFF,
        "spec.tiers.remote.tls",
        {"spec.tiers.remote": {**REMOTE, "url": "valkeys://a.kv:6380,b.kv:6380", "tls": _CA}},
        {"spec.tiers.remote": {**REMOTE, "tls": _CA}},
    ),
    RuleCase(
        _TLS_OFF,
        "spec.tiers.remote.tls",
        {
            "spec.tiers.remote": {
                **REMOTE,
                "url": "s3://kv?endpoint=https://minio:9000&region=eu-1",
                "tls": _CA,
            }
        },
        {"spec.tiers.remote": {**REMOTE, "url": "valkey://a.kv", "tls": _CA}},
    ),
    RuleCase(
        _TLS_OFF,
        "spec.tiers.remote.tls",
        {"spec.tiers.remote": {"capacity": "1Ti", "managed": _CERTIFICATE, "tls": _CA}},
        {"spec.tiers.remote": {"capacity": "1Ti", "managed": {}, "tls": _CA}},
    ),
    RuleCase(
        "what is in brackets is no IPv6 address; write it as [2001:db8::1]",
        "spec.tiers.remote.url",
        {"spec.tiers.remote": {**REMOTE, "url": "redis://[2001:db8::1]:6379,[::1],cache"}},
        {"spec.tiers.remote": {**REMOTE, "url": "redis://cache,[::::]:6379"}},
    ),
)
