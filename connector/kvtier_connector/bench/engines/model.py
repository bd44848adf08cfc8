"""A model with random weights for benchmarks: time to first token does not depend on the weights.

They are large enough that every token of a prompt shows in what the model answers; with vLLM's own dummy
weights (within 0.001 of zero) the last token alone decides, and a wrong KV cache goes unnoticed.
"""

import json
from pathlib import Path

from kvtier_connector.bench.shapes import DEMO, SHAPES


def write_bench_model(folder: Path, shape: str = DEMO, /, **overrides: object) -> Path:
    """Write a model as Hugging Face does, with the same random weights every time.

    Args:
        folder: where to write; it is made.
        shape: name of its sizes in the table of shapes.
        overrides: Hugging Face configuration values other than the shape's.

    Returns:
        The folder.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, set_seed  # noqa: PLC0415 - takes seconds
    from transformers.utils.logging import disable_progress_bar  # noqa: PLC0415

    disable_progress_bar()
    values = dict(SHAPES[shape].config) | overrides
    values["initializer_range"] = weights_deviation(int(values["hidden_size"]))
    set_seed(0)
    AutoModelForCausalLM.from_config(AutoConfig.for_model(**values)).save_pretrained(folder)
    return folder


def write_bench_config(folder: Path, shape: str) -> Path:
    """Write a model without weights, for engines that draw them in place; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(dict(SHAPES[shape].config), indent=2) + "\n")
    return folder


def weights_deviation(hidden_size: int) -> float:
    """Return the standard deviation of weights that keep the size of what goes through a layer.

    Glorot and Bengio, AISTATS 2010.

    Args:
        hidden_size: width of the model.
    """
    return float(hidden_size**-0.5)
