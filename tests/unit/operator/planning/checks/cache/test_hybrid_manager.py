import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.cache_blocks import hybrid_manager

OFF = "--disable-hybrid-kv-cache-manager"
ON = "--no-disable-hybrid-kv-cache-manager"
PLAIN, WINDOWS, STATES = "Qwen/Qwen3-32B", "openai/gpt-oss-120b", "Qwen/Qwen3-Next-80B-A3B-Instruct"


def one(model: str, *arguments: str, backend: str = "KVTier") -> KVCacheTier:
    return resource(model, backend=backend, engine={"extraArgs": [*arguments]})


@pytest.mark.parametrize("model", [PLAIN, WINDOWS, STATES])
@pytest.mark.parametrize("arguments", [[], [ON], [OFF, ON]])
def test_vllm_decides(model: str, arguments: list[str]) -> None:
    says(verdict(hybrid_manager, one(model, *arguments)), PASS, "Passed")


@pytest.mark.parametrize("word", [OFF, "--disable_hybrid_kv_cache_manager", "--disable-hybrid"])
def test_a_model_with_states_does_not_start_without_it(word: str) -> None:
    result = verdict(hybrid_manager, one(STATES, word))
    says(result, REJECT, "HybridManagerNeeded", OFF, "remove it")
    assert result.field == "spec.engine.extraArgs[0]"


def test_a_model_with_windows_keeps_them_in_full() -> None:
    says(verdict(hybrid_manager, one(WINDOWS, OFF)), WARN, "WindowsKeptInFull", OFF)


def test_other_models_do_not_need_it() -> None:
    says(verdict(hybrid_manager, one(PLAIN, OFF)), PASS, "Passed")


def test_lmcache_in_the_engine_cannot_have_it() -> None:
    says(verdict(hybrid_manager, one(PLAIN, OFF, backend="LMCache")), PASS, "Passed")
    result = verdict(hybrid_manager, one(PLAIN, ON, backend="LMCache"))
    says(result, REJECT, "HybridManagerNotSupported", ON)
