"""Which copies to a GPU are a kernel's, and which the copy engine's."""

import numpy as np
import pytest

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

KIB = 1 << 10


@pytest.mark.parametrize(
    ("sizes", "has_triton", "chunk_bytes"),
    [
        ([18 * KIB] * 40, True, 8 * KIB),
        ([1152] * 40, True, 2 * KIB),
        ([KIB, 4 * KIB], True, KIB),  # two neighbours' blocks: the kernel of single ones is there already
        ([18 * KIB, 128 * KIB], True, 0),
        ([1100] * 40, True, 0),
        ([18 * KIB] * 40, False, 0),
    ],
)
def test_small_copies_are_a_kernels(
    sizes: list[int], has_triton: bool, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kvtier_connector.vllm.copies.copier_cuda import kernel_chunk_bytes  # noqa: PLC0415 - imports vLLM
    from kvtier_connector.vllm.upstream import dma  # noqa: PLC0415 - as above

    monkeypatch.setattr(dma, "HAS_TRITON", has_triton)
    assert kernel_chunk_bytes(np.array(sizes, np.int64)) == chunk_bytes
