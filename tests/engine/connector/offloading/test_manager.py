"""The manager through vLLM's own interface and types; no engine is started."""

from typing import Any

import pytest
from tests.engine.connector.offloading_config import offloading_config

from kvtier_connector.core.region.growth import Grown

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


def test_the_manager_keeps_a_requests_own_prefix_and_tells_what_left() -> None:
    from vllm.v1.kv_offload.base import LookupResult, ReqContext, make_offload_key  # noqa: PLC0415 - as above

    from kvtier_connector.vllm.spec import KVTierOffloadingSpec  # noqa: PLC0415 - takes seconds

    manager = KVTierOffloadingSpec(offloading_config()).get_manager()
    manager.grow(Grown(1024, 0, is_over=True))  # chunks of 1 MiB
    keys = [make_offload_key(number.to_bytes(32, "big"), 0) for number in range(1200)]
    context = ReqContext("a")
    for place, key in enumerate(keys):
        context.set_offload_key_position(key, place * 16)

    def store(part: list[Any], request: ReqContext) -> Any:  # noqa: ANN401 - vLLM publishes no types
        prepared = manager.prepare_store(part, request)
        assert {manager.lookup(key, request) for key in prepared.keys_to_store} <= {LookupResult.HIT_PENDING}
        manager.complete_store(set(prepared.keys_to_store), request)
        return prepared

    store(keys[:1000], context)
    rest = store(keys[1000:], context)
    assert (rest.keys_to_store, rest.evicted_keys) == (keys[1000:1024], [])

    other = ReqContext("b")
    new = [make_offload_key(number.to_bytes(32, "big"), 0) for number in range(5000, 5010)]
    assert store(new, other).evicted_keys == keys[999:989:-1]
    removed = [event.keys for event in manager.take_events() if event.removed]
    assert removed == [keys[999:989:-1]]

    slots = manager.prepare_load(new, other).slots
    assert len(set(slots.tolist())) == 10
    manager.invalidate(new)
    assert {manager.lookup(key, other) for key in new} == {LookupResult.MISS}
    manager.complete_load(set(new), other)
    assert store(new, other).keys_to_store == new


def test_another_hash_than_the_default_is_known_before_anything_is_stored() -> None:
    from vllm.v1.kv_offload.base import LookupResult, ReqContext, make_offload_key  # noqa: PLC0415 - as above

    from kvtier_connector.vllm.spec import KVTierOffloadingSpec  # noqa: PLC0415 - takes seconds
    from kvtier_connector.vllm.upstream.engine import chunk_key_bytes  # noqa: PLC0415 - as above

    manager = KVTierOffloadingSpec(offloading_config()).get_manager()
    manager.expect_keys(chunk_key_bytes("xxhash"))
    manager.grow(Grown(1024, 0, is_over=True))
    keys = [make_offload_key(number.to_bytes(16, "big"), 0) for number in range(3)]
    context = ReqContext("a")
    manager.touch(keys, context)  # what a request finds on the device, in whose step another computes it
    assert manager.memory.places(keys) == {}
    prepared = manager.prepare_store(keys, context)
    manager.complete_store(set(prepared.keys_to_store), context)
    assert [manager.lookup(key, context) for key in keys] == [LookupResult.HIT] * 3
