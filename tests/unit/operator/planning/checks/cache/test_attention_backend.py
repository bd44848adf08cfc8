import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.cache_format import attention_backend
from kvtier_operator.planning.kv_cache.resolve import resolve_geometry
from kvtier_operator.planning.observed import Observed

HEADS, LATENT, SPARSE = "Qwen/Qwen3-32B", "deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3.2"


def one(model: str, *arguments: str) -> KVCacheTier:
    return resource(model, engine={"extraArgs": [*arguments]})


@pytest.mark.parametrize("model", [HEADS, LATENT, SPARSE])
def test_vllm_chooses(model: str) -> None:
    says(verdict(attention_backend, one(model)), PASS, "Passed")


@pytest.mark.parametrize(
    ("model", "backend"),
    [(HEADS, "FLASHINFER"), (LATENT, "flashmla"), (SPARSE, "FLASHMLA_SPARSE")],
)
def test_one_for_the_model(model: str, backend: str) -> None:
    says(
        verdict(attention_backend, one(model, "--attention-backend", backend)),
        PASS,
        "Passed",
        backend.upper(),
    )


@pytest.mark.parametrize(
    ("model", "backend", "other"),
    [
        (HEADS, "FLASHMLA", "FLASH_ATTN, FLASHINFER"),
        (LATENT, "FLASH_ATTN", "TRITON_MLA"),
        (LATENT, "FLASHMLA_SPARSE", "FLASHMLA"),
        (SPARSE, "FLASH_ATTN_MLA", "FLASHMLA_SPARSE"),
    ],
)
def test_one_for_another_kind_of_attention(model: str, backend: str, other: str) -> None:
    result = verdict(attention_backend, one(model, f"--attention-backend={backend}"))
    says(result, REJECT, "BackendNotSupported", backend, other)


def test_one_that_is_not_known() -> None:
    result = verdict(attention_backend, one(HEADS, "--attention-backend", "ROCM_AITER_UNIFIED_ATTN"))
    says(result, WARN, "BackendNotKnown", "ROCM_AITER_UNIFIED_ATTN", "16 tokens")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--attention-backend", "FLASHMLA"],
        ["--attention-config", '{"backend": "FLASHMLA"}'],
        ["--attention-config.backend=FLASHMLA"],
        ["-ac.backend", "FLASHMLA"],
    ],
)
def test_every_way_to_name_one_decides_the_block(arguments: list[str]) -> None:
    assert resolve_geometry(one(LATENT, *arguments).spec, Observed()).block_tokens == 64
