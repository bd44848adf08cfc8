"""Checks of what a backend can serve: hybrid-models, lmcache-deprecated, pinned-allocation."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.device import deprecated_backend
from kvtier_operator.planning.checks.memory import pinned_allocation
from kvtier_operator.planning.checks.model import hybrid_models

MLA = "deepseek-ai/DeepSeek-V3"
NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct"


@pytest.mark.parametrize("backend", ["KVTier", "Native", "LMCacheMP"])
def test_states_need_the_hybrid_cache_manager(backend: str) -> None:
    says(verdict(hybrid_models, resource(NEXT, backend=backend)), PASS, "Passed")


def test_lmcache_in_the_engine_cannot_serve_states() -> None:
    result = verdict(hybrid_models, resource(NEXT, backend="LMCache"))
    says(result, REJECT, "HybridModelNotSupported", "LMCacheMP")
    assert result.field == "spec.backend"


def test_lmcache_in_the_engine_keeps_windows_in_full() -> None:
    says(verdict(hybrid_models, resource("openai/gpt-oss-20b", backend="LMCache")), WARN, "WindowsKeptInFull")


def test_plain_models_are_served_by_all() -> None:
    says(verdict(hybrid_models, resource(backend="LMCache")), PASS, "Passed")


def test_the_in_process_connector_is_deprecated() -> None:
    says(verdict(deprecated_backend, resource(backend="LMCache")), WARN, "InProcessDeprecated")
    says(verdict(deprecated_backend, resource(backend="LMCacheMP")), PASS, "Passed")


@pytest.mark.parametrize("backend", ["LMCache", "LMCacheMP"])
def test_lmcache_pins_in_one_call(backend: str) -> None:
    result = verdict(pinned_allocation, resource(backend=backend, cpu="600Gi"))
    says(result, WARN, "PinningMayFail", "600 GiB")
    says(verdict(pinned_allocation, resource(backend=backend, cpu="400Gi")), PASS, "Passed")


def test_ranks_pin_their_share() -> None:
    one = resource(backend="LMCache", cpu="600Gi", engine={"tensorParallelSize": 2})
    says(verdict(pinned_allocation, one), PASS, "Passed")


@pytest.mark.parametrize(
    ("spec", "helps"),
    [
        ({"backend": "LMCache"}, True),
        # neither is shared out over the ranks: the server holds all, and of a latent an engine's first rank
        ({"backend": "LMCacheMP", "engine": {"tensorParallelSize": 2}}, False),
        ({"model": MLA, "backend": "LMCache", "engine": {"tensorParallelSize": 8}}, False),
    ],
    ids=str,
)
def test_more_ranks_pin_less_each(spec: dict[str, Any], helps: bool) -> None:
    result = verdict(pinned_allocation, resource(cpu="600Gi", **spec))
    says(result, WARN, "PinningMayFail", "600 GiB", "spec.backend to KVTier")
    assert ("tensorParallelSize" in result.message) == helps


@pytest.mark.parametrize("backend", ["KVTier", "Native"])
def test_others_pin_in_pieces(backend: str) -> None:
    says(verdict(pinned_allocation, resource(backend=backend, cpu="2Ti")), PASS, "Passed")
