"""A small Llama with random weights for benchmarks: time to first token does not depend on the weights."""

import json
from pathlib import Path

_CONFIG = {
    "architectures": ["LlamaForCausalLM"],
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
    """Write a config.json and, by vLLM's ``--load-format dummy``, nothing else: vLLM draws the weights.

    Args:
        folder: where to write; it is made.
        overrides: Hugging Face configuration values other than the 73M-parameter model's.

    Returns:
        The folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(_CONFIG | overrides, indent=2))
    return folder
