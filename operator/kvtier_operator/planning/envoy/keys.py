"""API keys at the entrance: who is asked for one, how many requests it is good for, and what others are told.

Sources: Envoy 1.40's api_key_auth (which takes `Bearer` off by itself), local_ratelimit and ECDS.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kvtier_operator.planning.envoy.clusters import any_of, extension
from kvtier_operator.planning.envoy.gateway import Keys
from kvtier_scorer.config.contract import CLIENT, KEYS_FILTER

OPEN_PATHS: Final = ("/health", "/ping")
"""For whoever watches; vLLM asks nobody for a key there either."""
OPEN_METHODS: Final = ("GET", "HEAD")
"""There without a key: what brings a body shows one."""
KEY_HEADER: Final = "authorization"
UNASKED: Final[Mapping[str, Any]] = {
    KEYS_FILTER: {"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "disabled": True}
}
"""`typed_per_filter_config` of a route that takes no key."""
_MOST_CLIENTS: Final = 65_536
"""Buckets, of one Secret: more entries of a key and a name do not fit into its mebibyte."""
_ALWAYS: Final = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
_BOUND_REACHED: Final = extension(
    "envoy.access_loggers.extension_filters.cel",
    "access_loggers.filters.cel.v3.ExpressionFilter",
    {"expression": "response.code_details == 'local_rate_limited'"},
)
_UNAUTHORIZED: Final = 401
_TOO_MANY: Final = 429
_MINUTE_S: Final = 60


def key_filters(keys: Keys | None) -> Iterator[dict[str, Any]]:
    """Before all that costs something: without a key, and over the bound, nobody is asked."""
    if keys is None:
        return
    kind = any_of("filters.http.api_key_auth.v3.ApiKeyAuth")["@type"]
    source = {"path_config_source": {"path": keys.file}, "resource_api_version": "V3"}
    # until the file is there nobody gets in
    yield {"name": KEYS_FILTER, "config_discovery": {"config_source": source, "type_urls": [kind]}}
    if keys.requests_per_minute is not None:
        yield _bound(keys.requests_per_minute)


def _bound(requests: int) -> dict[str, Any]:
    """A bucket for each client that has shown a key; what is open has no client, and no bound."""
    bucket = {"max_tokens": requests, "tokens_per_fill": requests, "fill_interval": f"{_MINUTE_S}s"}
    by_client = {"request_headers": {"header_name": CLIENT, "descriptor_key": "client"}}
    return extension(
        "envoy.filters.http.local_ratelimit",
        "filters.http.local_ratelimit.v3.LocalRateLimit",
        {
            "stat_prefix": "api_keys",
            "filter_enabled": _ALWAYS,
            "filter_enforced": _ALWAYS,
            "rate_limits": [{"actions": [by_client]}],
            "descriptors": [{"entries": [{"key": "client"}], "token_bucket": bucket}],
            "max_dynamic_descriptors": _MOST_CLIENTS,
            "enable_x_ratelimit_headers": "DRAFT_VERSION_03",
        },
    )


def key_replies(keys: Keys | None) -> list[dict[str, Any]]:
    """Mappers of answers of Envoy's own: OpenAI's errors in place of its plain text."""
    if keys is None:
        return []
    refused = _reply(
        _UNAUTHORIZED,
        "AuthenticationError",
        "No API key, or one that is not known here; send it as Authorization: Bearer KEY.",
        {"status_code_filter": {"comparison": {"value": _number(_UNAUTHORIZED)}}},
    )
    asks = {"header": {"key": "www-authenticate", "value": "Bearer"}}
    refused["headers_to_add"] = [asks]
    # a picker may say 429, too; Envoy's flag of this one is set too late for a mapper
    too_many = _reply(
        _TOO_MANY,
        "RateLimitError",
        "More requests than this API key has in a minute; send it again later.",
        {"extension_filter": _BOUND_REACHED},
    )
    too_many["headers_to_add"] = [{"header": {"key": "retry-after", "value": str(_MINUTE_S)}}]
    return [refused, too_many]


def _number(status: int) -> dict[str, Any]:
    return {"default_value": status, "runtime_key": f"status_{status}"}


def _reply(status: int, kind: str, message: str, condition: Mapping[str, Any]) -> dict[str, Any]:
    error = {"message": message, "type": kind, "param": None, "code": status}
    body = {"inline_string": json.dumps({"error": error})}
    form = {"text_format_source": body, "content_type": "application/json"}
    return {"filter": condition, "body_format_override": form}
