"""Prompts as token ids, and what an engine answers to them."""

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vllm import LLM

# A device so small that prompts take turns on it. A block has 32 tokens.
BLOCKS = 47
SMALL_DEVICE = {"num_gpu_blocks_override": BLOCKS + 1}  # vLLM keeps one


def prompt(length: int, seed: int = 0) -> list[int]:
    numbers = random.Random(f"{length}/{seed}")  # noqa: S311 - not for secrets
    return [numbers.randrange(3, 500) for _ in range(length)]


# Of these, 39 whole blocks are kept.
PROMPTS = [prompt(length) for length in (31, 32, 65, 200, 333, 640)]
CACHED = [0, 32, 64, 192, 320, 640]


def answers(llm: "LLM", prompts: list[list[int]], tokens: int = 8) -> list[tuple[list[int], int]]:
    """Return for each prompt the tokens generated at temperature 0, and how many of its own were cached."""
    from vllm import SamplingParams  # noqa: PLC0415 - takes seconds

    how = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False)
    asked = [{"prompt_token_ids": ids} for ids in prompts]
    outputs = llm.generate(asked, how, use_tqdm=False)
    return [(list(output.outputs[0].token_ids), output.num_cached_tokens) for output in outputs]


def hinted_answer(
    llm: "LLM", ids: list[int], hints: object = None, salt: str | None = None
) -> tuple[list[int], int]:
    """Return what a prompt with hints is answered, and how many of its tokens were cached."""
    from vllm import SamplingParams  # noqa: PLC0415 - takes seconds

    extra = None if hints is None else {"kv_transfer_params": {"kvtier": hints}}
    how = SamplingParams(temperature=0, max_tokens=8, ignore_eos=True, detokenize=False, extra_args=extra)
    asked: dict[str, Any] = {"prompt_token_ids": ids}
    if salt is not None:
        asked["cache_salt"] = salt
    (output,) = llm.generate([asked], how, use_tqdm=False)
    return list(output.outputs[0].token_ids), output.num_cached_tokens or 0


def overwrite(llm: "LLM") -> None:
    """Put other prompts into all blocks of a small device, and have them forgotten.

    To empty the prefix cache is not enough: vLLM hands the same blocks out again, as they were.
    """
    parts = [BLOCKS // 2, BLOCKS - BLOCKS // 2]
    answers(llm, [prompt(32 * part, seed) for seed, part in enumerate(parts, start=100)], tokens=1)
    assert llm.reset_prefix_cache()


def tokens_of(found: list[tuple[list[int], int]]) -> list[list[int]]:
    return [tokens for tokens, _ in found]


def metric(llm: "LLM", name: str) -> float:
    return float(sum(sample.value for sample in llm.get_metrics() if sample.name == name))
