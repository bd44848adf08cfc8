"""What the demo serves and asks: a random Llama, and a text cut to what this machine computes in time."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from kvtier_operator.errors import RuntimeFailedError

# How long a prefill takes does not depend on the values of the weights, only on their shapes, so a random
# model shows the same times as a trained one of its size. What it writes is nonsense, and always the same.
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


_DOCUMENTS: Final = 5


def corpus() -> str:
    """The Python language reference as pydoc carries it: 460 kB or more of prose, in a fixed order."""
    from pydoc_data import topics  # noqa: PLC0415 - 0.5 MB of text, for the demo only

    return "\n\n".join(text.strip() for _, text in sorted(topics.topics.items()))


def documents(text: str, token_starts: Sequence[int], count: int, tokens_each: int) -> tuple[str, ...]:
    """Cut disjoint documents of about `tokens_each` tokens; a RuntimeFailedError if the text is too short."""
    needed = count * tokens_each
    if len(token_starts) < needed:
        raise RuntimeFailedError(
            f"the demo's text has {len(token_starts)} tokens with this tokenizer; "
            f"{count} documents of {tokens_each} need {needed}: ask for fewer tokens a document"
        )
    edges = [
        *token_starts[:needed:tokens_each],
        token_starts[needed] if len(token_starts) > needed else len(text),
    ]
    return tuple(text[start:end] for start, end in pairwise(edges))


def demo_documents(text: str, model: Path, tokens: int) -> tuple[str, ...]:
    """The demo's documents of `tokens` tokens each, cut by the model's own tokenizer."""
    from tokenizers import Tokenizer  # noqa: PLC0415 - heavy

    path = model / "tokenizer.json"
    if not path.exists():
        raise RuntimeFailedError(f"{path}: no such file; the demo cuts its documents with it")
    encoding = Tokenizer.from_file(str(path)).encode(text, add_special_tokens=False)
    return documents(text, [start for start, _ in encoding.offsets], _DOCUMENTS, tokens)


@dataclass(frozen=True, slots=True)
class Questions:
    """What a part of the demo asks about: at least two texts of so many tokens, with no common beginning."""

    texts: Sequence[str]
    tokens: int  # length of each
    until_s: float  # when to be done (time.monotonic); a slow machine is asked less

    def shorten(self, tokens: int, until_s: float) -> "Questions":
        """About the beginnings of the same texts."""
        share = tokens / self.tokens
        return Questions(tuple(text[: int(share * len(text))] for text in self.texts), tokens, until_s)


_TOKENS: Final = 1024
_REPEATS: Final = 3
# Beside the products, an engine copies, normalizes, samples: a prompt took 1.3 to 1.6 times their time.
_OVERHEAD: Final = 1.6


@dataclass(frozen=True, slots=True)
class Pace:
    """What a prompt of n tokens takes: `token_s` * n + `pair_s` * n * n seconds.

    That is the time of two kinds of matrix products: with the weights, and of attention. Both are timed at
    the model's own sizes, in a process of their own.
    """

    token_s: float  # seconds for each token
    pair_s: float  # seconds for each token and token before it

    def prompt_s(self, tokens: int) -> float:
        """Seconds to compute a prompt."""
        return (self.token_s + self.pair_s * tokens) * tokens

    def fitting_tokens(self, within_s: float, *, fewest: int, most: int, step: int = 500) -> int:
        """The longest prompt, from `fewest` to `most` tokens, that is computed in the time."""
        fitting = (tokens for tokens in range(most, fewest, -step) if self.prompt_s(tokens) <= within_s)
        return next(fitting, fewest)


def measure_pace(model: Path) -> Pace:
    """Measure with the sizes of a model's `config.json`, which takes a few seconds."""
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-P", "-m", __name__, str(model / "config.json")],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise RuntimeFailedError(f"this machine's pace could not be measured: {last}")
    return Pace(**json.loads(done.stdout))


def _measure(config: Mapping[str, int]) -> Pace:
    layers, hidden, inner = (
        config[name] for name in ("num_hidden_layers", "hidden_size", "intermediate_size")
    )
    heads = config["num_attention_heads"]
    import torch  # noqa: PLC0415 - heavy

    # Queries, keys, values and the output; gate, up and down.
    shapes = [(hidden, hidden)] * 4 + [(hidden, inner)] * 2 + [(inner, hidden)]
    weights = [(torch.randn(_TOKENS, rows), torch.randn(rows, columns)) for rows, columns in shapes]
    states = torch.randn(1, heads, _TOKENS, hidden // heads)

    def layer() -> None:
        for left, right in weights:
            torch.mm(left, right)

    def attention() -> None:
        torch.nn.functional.scaled_dot_product_attention(states, states, states, is_causal=True)

    with torch.inference_mode():
        return Pace(
            _OVERHEAD * layers * _fastest_s(layer) / _TOKENS,
            _OVERHEAD * layers * _fastest_s(attention) / _TOKENS**2,
        )


def _fastest_s(run: Callable[[], None]) -> float:
    times = []
    for _ in range(_REPEATS + 1):  # the first allocates
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


MOST_DOCUMENT_TOKENS: Final = 15_500
MOST_SYSTEM_TOKENS: Final = 1_500
_FEWEST_DOCUMENT_TOKENS: Final = 2_000
_FEWEST_SYSTEM_TOKENS: Final = 500
# Of the whole time, what a prompt may take to compute: the first part computes at least five, the second
# forty, and engines that start, stop and answer from caches take about half.
_DOCUMENT_SHARE: Final = 1 / 22
_SYSTEM_PROMPT_SHARE: Final = 1 / 160


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths of prompts."""

    document_tokens: int  # of the first part's
    system_tokens: int  # of the second part's system prompts, at most a document's
    note: str = ""  # why they are shorter than by default, in one sentence; empty where they are not

    def with_documents(self, tokens: int) -> "Lengths":
        """The same with documents as long as somebody asked for."""
        system = min(self.system_tokens, tokens)
        note = (
            f"For this machine to be done in time, system prompts have {system:,} tokens "
            f"(by default {MOST_SYSTEM_TOKENS:,})."
        )
        return Lengths(tokens, system, note if system < min(tokens, MOST_SYSTEM_TOKENS) else "")


def default_lengths(why: str) -> Lengths:
    """Lengths for a machine whose pace is not known."""
    note = f"Prompts are as long as on a fast machine, whatever time that takes: {why}."
    return Lengths(MOST_DOCUMENT_TOKENS, MOST_SYSTEM_TOKENS, note)


def fitting_lengths(pace: Pace, within_s: float) -> Lengths:
    """The longest prompts, up to the defaults, that a machine is done with."""
    documents = pace.fitting_tokens(
        within_s * _DOCUMENT_SHARE, fewest=_FEWEST_DOCUMENT_TOKENS, most=MOST_DOCUMENT_TOKENS
    )
    system = pace.fitting_tokens(
        within_s * _SYSTEM_PROMPT_SHARE, fewest=_FEWEST_SYSTEM_TOKENS, most=MOST_SYSTEM_TOKENS, step=100
    )
    if (documents, system) == (MOST_DOCUMENT_TOKENS, MOST_SYSTEM_TOKENS):
        return Lengths(documents, system)
    note = (
        f"This machine would compute {MOST_DOCUMENT_TOKENS:,} tokens in about "
        f"{pace.prompt_s(MOST_DOCUMENT_TOKENS):.0f} s, so documents have {documents:,} and system prompts "
        f"{system:,} (by default {MOST_SYSTEM_TOKENS:,}): the longer the prefix, the more a tier gains."
    )
    return Lengths(documents, system, note)


if __name__ == "__main__":
    try:
        config = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
        # a model that also takes images has its language model's sizes there
        measured = _measure(config | config.get("text_config", {}))
    except KeyError as missing:
        sys.exit(f"{sys.argv[1]}: {missing} is missing")
    sys.stdout.write(json.dumps(asdict(measured)))
