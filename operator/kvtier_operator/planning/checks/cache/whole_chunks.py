"""Whether chunks are whole blocks on whatever GPU the engine gets, where the backend asks for that."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.units import count
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("lmcache-chunk", "spec.engine.blockSize")
_STEP_TOKENS: Final = 64
"""What vLLM rounds a state's block up to at most, of itself: all GPUs agree on multiples of it."""


def whole_chunks(given: CheckInput) -> CheckResult:
    """The backend's connector starts only if the chunk is a multiple of the block."""
    if not given.traits.whole_blocks:
        return _VERDICTS.passed("another backend")
    chunk = given.backend.tokens_per_chunk
    blocks = given.geometry.block_tokens_by_gpu
    if all(chunk % block == 0 for block in blocks):
        return _VERDICTS.passed(f"chunks of {count(chunk)} tokens are whole blocks")
    either = " or ".join(map(count, blocks))
    return _VERDICTS.warn(
        "ChunkMayNotBeBlocks",
        f"vLLM takes blocks of {either} tokens, by its version and the GPU, and "
        f"{given.traits.project}'s connector does not start unless a chunk is whole blocks: set it to "
        f"{_STEP_TOKENS}, with which all agree",
        by_itself=f"starts the server with chunks of {count(chunk)}",
    )
