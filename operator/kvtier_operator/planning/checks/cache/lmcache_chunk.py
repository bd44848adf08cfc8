"""Whether LMCache's server has chunks of whole blocks on whatever GPU the engine gets."""

from typing import Final

from kvtier_operator.api.backend import Backend
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.units import count
from kvtier_operator.planning.verdict import CheckResult

_VERDICTS: Final = Verdicts("lmcache-chunk", "spec.engine.blockSize")
_STEP_TOKENS: Final = 64
"""What vLLM rounds a state's block up to at most, of itself: all GPUs agree on multiples of it."""


def lmcache_chunk(given: CheckInput) -> CheckResult:
    """Its connector starts only if the chunk is a multiple of the block (lmcache_mp_connector.py)."""
    if given.spec.backend is not Backend.LMCACHE_MP:
        return _VERDICTS.passed("another backend")
    chunk = given.backend.tokens_per_chunk
    blocks = given.geometry.block_tokens_by_gpu
    if all(chunk % block == 0 for block in blocks):
        return _VERDICTS.passed(f"chunks of {count(chunk)} tokens are whole blocks")
    either = " or ".join(map(count, blocks))
    return _VERDICTS.warn(
        "ChunkMayNotBeBlocks",
        f"vLLM takes blocks of {either} tokens, by its version and the GPU, and LMCache's connector does not "
        f"start unless a chunk is whole blocks: set it to {_STEP_TOKENS}, with which all agree",
        by_itself=f"starts the server with chunks of {count(chunk)}",
    )
