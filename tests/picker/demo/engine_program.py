"""A program in place of vLLM that remembers prompts: a device cache of two, and a tier of all if asked."""

import json
import sys
from collections import OrderedDict
from dataclasses import dataclass, field

from aiohttp import web

_ON_DEVICE = 2
_METRICS = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0"}} 0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{engine="0"}} 0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{{engine="0"}} 0
# TYPE vllm:prefix_cache_queries counter
vllm:prefix_cache_queries_total{{engine="0"}} {queried}
# TYPE vllm:prefix_cache_hits counter
vllm:prefix_cache_hits_total{{engine="0"}} {device}
# TYPE vllm:external_prefix_cache_hits counter
vllm:external_prefix_cache_hits_total{{engine="0"}} {tier}
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_count{{engine="0"}} {answered}
vllm:time_to_first_token_seconds_sum{{engine="0"}} 0
"""


@dataclass
class Cache:
    """System prompts by where they are, and what was counted: each prompt as one token."""

    has_tier: bool
    device: OrderedDict[str, None] = field(default_factory=OrderedDict)
    tier: set[str] = field(default_factory=set)
    counted: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("queried", "device", "tier", "answered"), 0)
    )

    def ask(self, prompt: str) -> None:
        """Find the prompt or compute it."""
        self.counted["queried"] += 1
        self.counted["answered"] += 1
        if prompt in self.device:
            self.counted["device"] += 1
        elif prompt in self.tier:
            self.counted["tier"] += 1
        if self.has_tier:
            self.tier.add(prompt)
        self.device[prompt] = None
        self.device.move_to_end(prompt)
        while len(self.device) > _ON_DEVICE:
            self.device.popitem(last=False)


def app(cache: Cache) -> web.Application:
    """Its HTTP server."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text=_METRICS.format(**cache.counted))

    async def tokenize(request: web.Request) -> web.Response:
        return web.json_response({"count": len((await request.json())["prompt"].split())})

    async def answer(request: web.Request) -> web.Response:
        asked = await request.json()
        messages = asked.get("messages")
        cache.ask(messages[0]["content"] if messages else asked["prompt"])
        piece = {"choices": [{"text": "a", "delta": {"content": "a"}}], "usage": {"prompt_tokens": 1}}
        return web.Response(
            text=f"data: {json.dumps(piece)}\n\ndata: [DONE]\n\n", content_type="text/event-stream"
        )

    async def healthy(_: web.Request) -> web.Response:
        return web.Response()

    served = web.Application(client_max_size=1 << 24)
    served.router.add_get("/health", healthy)
    served.router.add_get("/metrics", metrics)
    served.router.add_post("/tokenize", tokenize)
    served.router.add_post("/v1/chat/completions", answer)
    served.router.add_post("/v1/completions", answer)
    return served


def main(arguments: list[str]) -> None:
    """Serve where vLLM would."""
    host, port = (arguments[arguments.index(name) + 1] for name in ("--host", "--port"))
    web.run_app(app(Cache("--kv-transfer-config" in arguments)), host=host, port=int(port), print=None)


if __name__ == "__main__":
    main(sys.argv)
