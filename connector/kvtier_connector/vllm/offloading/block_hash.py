"""Warns at start if blocks that several clients share are named by a hash that one of them can collide."""

from typing import Final

from kvtier_connector.vllm.logger import log

_CRYPTOGRAPHIC: Final = ("sha256", "sha256_cbor")


def warn_of_weak_hash(algorithm: str) -> None:
    """Say once, at start, what a hash that is not cryptographic lets clients do.

    Args:
        algorithm: vLLM's --prefix-caching-hash-algo.
    """
    if algorithm not in _CRYPTOGRAPHIC:
        log.warning(
            "kvtier: --prefix-caching-hash-algo %s: a client can make a prompt that is answered from "
            "another's KV cache; where clients do not trust each other set sha256, vLLM's default, or "
            "sha256_cbor",
            algorithm,
        )
