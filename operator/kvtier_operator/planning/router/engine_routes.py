"""Every path that a vLLM server answers, and which of them a gateway passes to its clients.

Sources: vLLM 0.32 and 0.33, vllm/entrypoints, with all that its switches add;
tests/engine/planning/test_routes.py finds in them what this table lacks. A gateway passes a path with
everything below it, by whole segments, so nothing that is kept back may be below a path that passes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

EVERY_PATH: Final = "/"
"""Among `extraPaths`: nothing is kept back."""
CHAT: Final = "/v1/chat/completions"
"""What every gateway passes, and so what two that are in each other's way both ask for."""


class Use(StrEnum):
    """What a path is for."""

    INFERENCE = "answers of the model"
    TOKENS = "text to tokens and back"
    LOOK_UP = "what SDKs and probes ask before they send anything"
    FIGURES = "figures of the engine and of what others ask"
    INTERNALS = "how the engine is configured"
    PAGES = "pages about the API"
    WEIGHTS = "loads and replaces weights and adapters"
    CONTROL = "stops, resets and measures the engine, and ends others' requests"
    SCALE_OUT = "from a front end or another engine, which are trusted"
    WITHOUT_KEY = "answers of the model for which no VLLM_API_KEY is asked"

    @property
    def passes(self) -> bool:
        """Whether clients of a gateway need it."""
        return self in {Use.INFERENCE, Use.TOKENS, Use.LOOK_UP}


@dataclass(frozen=True, slots=True)
class EngineRoute:
    """One path."""

    path: str  # as vLLM writes it, parameters in braces
    use: Use  # what it is for
    since: int | None = None  # vLLM's minor that has it first; None for all that are supported


_PATHS: Final = {
    Use.LOOK_UP: ("/v1/models", "/version", "/health", "/ping"),
    Use.INFERENCE: (
        *(CHAT, "/v1/chat/completions/batch", "/v1/completions", "/v1/responses"),
        *("/v1/responses/{response_id}", "/v1/responses/{response_id}/cancel", "/v1/messages"),
        *("/v1/embeddings", "/v2/embed", "/pooling", "/classify", "/score", "/v1/score"),
        *("/rerank", "/v1/rerank", "/v2/rerank", "/generative_scoring", "/v1/systemone"),
        *("/v1/audio/transcriptions", "/v1/audio/translations", "/v1/realtime", "/cohere/v2/chat"),
    ),
    Use.TOKENS: (
        *("/tokenize", "/detokenize", "/v1/messages/count_tokens", "/v1/messages/render"),
        *("/v1/chat/completions/render", "/v1/chat/completions/derender", "/v1/completions/render"),
        *("/v1/completions/derender", "/v1/responses/render", "/cohere/v2/chat/render"),
    ),
    Use.FIGURES: ("/metrics", "/load"),
    Use.INTERNALS: ("/server_info", "/tokenizer_info", "/kv_event_sources"),
    Use.PAGES: ("/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json", "/static"),
    Use.WEIGHTS: (
        *("/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/adapters", "/adapters/{adapter_name}"),
        *("/init_weight_transfer_engine", "/shutdown_weight_transfer_engine", "/start_weight_update"),
        *("/start_draft_weight_update", "/update_weights", "/finish_weight_update"),
        *("/update_weight_version", "/weight_info", "/weight_checker", "/get_world_size"),
    ),
    Use.CONTROL: (
        *("/sleep", "/wake_up", "/is_sleeping", "/release_kv_cache_memory", "/pause", "/resume"),
        *("/is_paused", "/abort_requests", "/collective_rpc", "/reset_prefix_cache", "/reset_mm_cache"),
        *("/reset_encoder_cache", "/start_profile", "/stop_profile", "/scale_elastic_ep"),
        *("/is_scaling_elastic_ep", "/fault_tolerance/apply", "/fault_tolerance/status"),
        *("/ready", "/readyz"),
    ),
    Use.SCALE_OUT: ("/inference/v1/generate", "/inference/v1/abort_requests"),
    Use.WITHOUT_KEY: ("/invocations",),
}
ENGINE_ROUTES: Final = (
    *(EngineRoute(path, use) for use, paths in _PATHS.items() for path in paths),
    EngineRoute("/v1/decisions", Use.INFERENCE, since=33),
)
"""All of them; in vLLM's data-parallel supervisor too, which has /ready and /readyz."""


def passed_paths(extra: Iterable[str] = ()) -> tuple[str, ...]:
    """What passes a gateway, each path with everything below it; EVERY_PATH alone where that is asked for.

    Args:
        extra: `spec.router.gateway.extraPaths`.
    """
    own = (route.path.partition("/{")[0] for route in ENGINE_ROUTES if route.use.passes)
    paths = dict.fromkeys((*own, *extra))
    return tuple(path for path in paths if not any(is_below(path, other) for other in paths if other != path))


def is_below(path: str, other: str) -> bool:
    """Whether a path is another one or below it, by whole segments, as Gateway API's PathPrefix."""
    return other in {EVERY_PATH, path} or path.startswith(f"{other}/")
