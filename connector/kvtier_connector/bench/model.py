"""A small Llama with random weights for benchmarks: time to first token does not depend on the weights.

They are large enough that every token of a prompt shows in what the model answers; with vLLM's own dummy
weights (within 0.001 of zero) the last token alone decides, and a wrong KV cache goes unnoticed.
"""

from pathlib import Path
from typing import Any, Final

_CONFIG: Final[dict[str, Any]] = {
    "model_type": "llama",
    "hidden_size": 768,
    "num_hidden_layers": 8,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "intermediate_size": 2048,
    "vocab_size": 16384,
    "max_position_embeddings": 16384,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def write_bench_model(folder: Path, **overrides: object) -> Path:
    """Write a model as Hugging Face does, with the same random weights every time.

    Args:
        folder: where to write; it is made.
        overrides: Hugging Face configuration values other than the 73M-parameter model's.

    Returns:
        The folder.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, set_seed  # noqa: PLC0415 - takes seconds
    from transformers.utils.logging import disable_progress_bar  # noqa: PLC0415

    disable_progress_bar()
    values = _CONFIG | overrides
    # What goes through a layer keeps its size: Glorot and Bengio, AISTATS 2010.
    values["initializer_range"] = values["hidden_size"] ** -0.5
    set_seed(0)
    AutoModelForCausalLM.from_config(AutoConfig.for_model(**values)).save_pretrained(folder)
    return folder
