"""A Llama with fixed random weights and a BPE tokenizer, made on the spot and cached by version.

How long a prefill takes does not depend on the values of the weights, only on their shapes, so a random
model shows the same times as a trained one of its size. What it writes is nonsense, and always the same.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

FORMAT_VERSION: Final = 3
END_OF_TEXT: Final = "<|end|>"
UNKNOWN: Final = "<unk>"
# Each role on a line of its own, then what it says.
CHAT_TEMPLATE: Final = (
    "{% for message in messages %}{{ message['role'] }}:\n{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:\n{% endif %}"
)


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Shape of a Llama; the defaults have 76 million parameters and take 8,192 bytes of KV cache a token."""

    layers: int = 8  # transformer layers
    hidden_size: int = 768  # width of the residual stream
    intermediate_size: int = 2816  # width of the MLP
    heads: int = 12  # query heads
    kv_heads: int = 2  # key/value heads
    head_dim: int = 64  # size of one head
    vocab_size: int = 8192  # tokens of the vocabulary, the tokenizer's and the embedding's
    max_position_tokens: int = 32768  # longest sequence


def model_config(shape: ModelShape) -> dict[str, Any]:
    """The model's Hugging Face `config.json`."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "float32",
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.intermediate_size,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "vocab_size": shape.vocab_size,
        "max_position_embeddings": shape.max_position_tokens,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "initializer_range": shape.hidden_size**-0.5,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": 0,
    }


def cache_folder() -> Path:
    """Where kvtier keeps what it can make again: $XDG_CACHE_HOME/kvtier, by default ~/.cache/kvtier."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kvtier"


def random_model(shape: ModelShape, text: str, folder: Path, say: Callable[[str], None]) -> Path:
    """Make the model under `folder` unless it is there already, and return its own folder."""
    identity = json.dumps([FORMAT_VERSION, asdict(shape), sha256(text.encode()).hexdigest(), CHAT_TEMPLATE])
    target = folder / f"random-llama-{sha256(identity.encode()).hexdigest()[:12]}"
    if (target / "config.json").exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=".building-", dir=folder))
    try:
        say(f"training a BPE tokenizer of {shape.vocab_size:,} tokens on {len(text) / 1e6:.1f} MB of text")
        _write_tokenizer(building, shape, text)
        _write_weights(building, shape, say)
        (building / "config.json").write_text(json.dumps(model_config(shape), indent=2))
        try:
            building.rename(target)
        except OSError:
            if not (target / "config.json").exists():
                raise
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return target


def _write_tokenizer(folder: Path, shape: ModelShape, text: str) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415 - heavy

    # Words begin at spaces, as in Llama 2's tokenizer: half the time of splitting by regular expressions.
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="never")
    trainer = trainers.BpeTrainer(
        vocab_size=shape.vocab_size, special_tokens=[END_OF_TEXT, UNKNOWN], show_progress=False
    )
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END_OF_TEXT,
        "pad_token": END_OF_TEXT,
        "unk_token": UNKNOWN,
        "model_max_length": shape.max_position_tokens,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2))


def _write_weights(folder: Path, shape: ModelShape, say: Callable[[str], None]) -> None:
    import torch  # noqa: PLC0415 - heavy
    from transformers import AutoConfig, AutoModelForCausalLM, set_seed  # noqa: PLC0415 - heavy
    from transformers.utils.logging import disable_progress_bar  # noqa: PLC0415 - as above

    disable_progress_bar()
    config = AutoConfig.for_model(**model_config(shape))
    with torch.device("meta"):
        parameters = AutoModelForCausalLM.from_config(config).num_parameters()
    say(f"drawing {parameters / 1e6:.0f} million random weights")
    set_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
