"""Bodies and messages that are as they should be, for fuzzers to begin with."""

import json
from typing import Final

from tests.unit.scorer.picker.gateway.protocol import gateway

from kvtier_scorer.picker.gateway.bodies import APIS

_CALL: Final = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
_IMAGE: Final = {"type": "image_url", "image_url": {"url": "u"}}
_BODIES: Final = (
    {"messages": [{"role": "system", "content": "be short"}, {"role": "user", "content": "hello é"}]},
    {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"}, _IMAGE]},
            {"role": "assistant", "content": None, "tool_calls": [_CALL]},
            {"role": "tool", "content": "42", "tool_call_id": "1"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        "chat_template_kwargs": {"enable_thinking": False},
        "cache_salt": "salt",
    },
    {"prompt": "once upon a time", "max_tokens": 5},
    {"prompt": ["one", "two"]},
    {"prompt": [1, 2, 4294967295]},
    {"prompt": [[1, 2], [3]]},
    {"prompt": None, "prompt_embeds": "AAAA"},
    {"input": "hello", "instructions": "be short", "reasoning": {"effort": "low"}},
    {"input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}]},
    {"input": [{"type": "function_call_output", "output": "42"}, {"type": "item_reference", "id": "2"}]},
    {"input": ["one", "two"], "encoding_format": "float"},
)  # fmt: skip
PATHS: Final = (*APIS, "/v1/models", "", "/prefix/v1/completions?a=b")
BODIES: Final = [json.dumps({"model": "fake", **body}).encode() for body in _BODIES]
GOOD: Final = [
    gateway.request_headers({":path": "/v1/completions"}),
    gateway.request_body(b'{"model": "fake", "prompt": "once upon a time"}'),
]
"""A request that gets its endpoint."""
MESSAGES: Final = [
    *(
        gateway.request_headers({":path": path, "x-request-id": "1", "content-length": "40"})
        for path in PATHS
    ),
    gateway.request_headers(end_of_stream=True, subset=["127.0.0.1:80", "127.0.0.2"]),
    gateway.request_headers({"x-kvtier-priority": "-1"}, mode=None, subset="127.0.0.1:80"),
    *(gateway.request_headers(mode=mode, response_mode=mode) for mode in range(5)),
    *map(gateway.request_body, BODIES),
    *(gateway.request_body(body[:20], end_of_stream=False) for body in BODIES),
    gateway.request_trailers(),
    gateway.response_headers(metadata={"x-gateway-destination-endpoint-served": "127.0.0.1:80"}),
    gateway.response_headers({":status": "503"}, end_of_stream=True),
    gateway.response_body(b"answer", end_of_stream=False),
    gateway.response_body(b"answer"),
    gateway.response_trailers(),
]
