"""Other hashes of blocks than the default: what weak ones let clients do is said, and all of them serve."""

import typing
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.connector.memory_tier import TIER
from tests.engine.connector.prompts import SMALL_DEVICE, answers, overwrite, prompt

from kvtier_connector.config import kv_transfer_config

pytestmark = pytest.mark.filterwarnings("ignore")  # what vLLM and PyTorch warn of is not ours


def test_every_hash_of_vllm_that_is_not_cryptographic_is_named(caplog: pytest.LogCaptureFixture) -> None:
    from vllm.config.cache import PrefixCachingHashAlgo  # noqa: PLC0415 - of the vLLM under test

    from kvtier_connector.vllm.offloading.start import warn_of_weak_hash  # noqa: PLC0415 - as above
    from kvtier_connector.vllm.upstream.compat import log  # noqa: PLC0415 - as above

    warned = []
    log.addHandler(caplog.handler)
    try:
        for algorithm in typing.get_args(PrefixCachingHashAlgo):
            caplog.clear()
            warn_of_weak_hash(algorithm)
            warned += [algorithm] if caplog.records else []
    finally:
        log.removeHandler(caplog.handler)
    assert warned == ["xxhash", "xxhash_cbor"]
    assert "--prefix-caching-hash-algo xxhash_cbor: a client can" in caplog.text


@pytest.mark.engine
def test_requests_of_one_prompt_come_together_before_anything_is_stored(engine: Callable[..., Any]) -> None:
    ids = prompt(333)
    with engine(kv_transfer_config(TIER), **SMALL_DEVICE, prefix_caching_hash_algo="xxhash") as llm:
        first, second = answers(llm, [ids, ids])
        assert (first[0], second[1]) == (second[0], 320), "the second finds on the device what is computed"
        overwrite(llm)
        assert answers(llm, [ids]) == [(first[0], 320)]
