"""What planner and connector take for given of vLLM when they size the disk tier."""

import pytest

from kvtier_connector.config import KEY_BYTES

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


def test_keys_are_as_long_as_vllms_default_makes_them() -> None:
    from vllm.config import CacheConfig  # noqa: PLC0415 - takes seconds
    from vllm.utils.hashing import get_hash_fn_by_name  # noqa: PLC0415 - as above
    from vllm.v1.kv_offload.base import OffloadKey, make_offload_key  # noqa: PLC0415 - as above

    block_hash = get_hash_fn_by_name(CacheConfig().prefix_caching_hash_algo)(None)
    key: OffloadKey = make_offload_key(block_hash, 0)
    assert len(key) == KEY_BYTES
