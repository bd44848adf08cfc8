"""Bytes of a cell, by hand; beside vLLM's own: tests/engine/planning/kv_cache/test_cache_dtypes.py."""

import pytest

from kvtier_operator.api.spec.engine import KVCacheDtype
from kvtier_operator.planning.kv_cache.split import cell_bytes


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (KVCacheDtype.AUTO, 512),
        (KVCacheDtype.BFLOAT16, 512),
        (KVCacheDtype.FP8, 256),
        (KVCacheDtype.INT8_PER_TOKEN_HEAD, 256 + 8),  # two float32 scales
        (KVCacheDtype.INT4_PER_TOKEN_HEAD, 128 + 8),
        (KVCacheDtype.NVFP4, 2 * (64 + 8)),  # a scale for each 16
        (KVCacheDtype.ULTRAQUANT_4BIT, 2 * (64 + 4)),
        (KVCacheDtype.TURBOQUANT_K8V4, 128 + 64 + 4),
        (KVCacheDtype.TURBOQUANT_3BIT_NC, 48 + 2 + 48 + 4),
    ],
)
def test_a_head_of_128(dtype: KVCacheDtype, expected: int) -> None:
    assert cell_bytes(dtype, 128, 128, 2) == expected


def test_a_latent() -> None:
    assert cell_bytes(KVCacheDtype.AUTO, 576, 0, 2) == 1152
    assert cell_bytes(KVCacheDtype.FP8_DS_MLA, 576, 0, 2) == 656


def test_float32() -> None:
    assert cell_bytes(KVCacheDtype.AUTO, 128, 128, 4) == 1024


def test_every_dtype_has_a_size() -> None:
    sizes = {dtype: cell_bytes(dtype, 128, 128, 3) for dtype in KVCacheDtype}
    assert [dtype for dtype, size in sizes.items() if size == 3 * 256] == [KVCacheDtype.AUTO]
