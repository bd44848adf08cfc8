"""The connector says at start what a weak hash of blocks lets clients do."""

import typing

import pytest


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
