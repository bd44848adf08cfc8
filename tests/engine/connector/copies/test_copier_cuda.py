"""Which copies to a GPU are a kernel's, and which the copy engine's."""

import numpy as np
import pytest

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

KIB = 1 << 10


@pytest.mark.parametrize(
    ("sizes", "below_kib", "chunk_bytes"),
    [
        ([18 * KIB] * 40, 28, 8 * KIB),
        ([1152] * 40, 28, 2 * KIB),
        ([KIB, 4 * KIB], 28, KIB),  # two neighbours' blocks: the kernel of single ones is there already
        ([18 * KIB, 128 * KIB], 28, 0),
        ([1100] * 40, 28, 0),
        ([18 * KIB] * 40, 0, 0),  # without Triton
    ],
)
def test_small_copies_are_a_kernels(sizes: list[int], below_kib: int, chunk_bytes: int) -> None:
    from kvtier_connector.vllm.copies.copier_cuda import kernel_chunk_bytes  # noqa: PLC0415 - imports vLLM

    assert kernel_chunk_bytes(np.array(sizes, np.int64), below_kib * KIB) == chunk_bytes
