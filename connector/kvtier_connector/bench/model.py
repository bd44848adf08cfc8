"""A model with random weights for benchmarks: time to first token does not depend on the weights.

They are large enough that every token of a prompt shows in what the model answers; with vLLM's own dummy
weights (within 0.001 of zero, those of the layers' norms, too) the last token alone decides, and a wrong KV
cache goes unnoticed. On a GPU they are drawn where they lie: nothing is written, read or copied, and a
model of 8 billion parameters has its weights within a second.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kvtier_connector.bench.choices import DEMO, SHAPES

if TYPE_CHECKING:
    import torch


def write_bench_model(folder: Path, shape: str = DEMO, /, **overrides: object) -> Path:
    """Write a model as Hugging Face does, with the same random weights every time; returns the folder.

    `overrides` are Hugging Face configuration values other than the shape's.
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
    """Return the deviation of weights that keep the size of what goes through (Glorot and Bengio, 2010)."""
    return float(hidden_size**-0.5)


EXTENSION: Final = f"{__name__}.RandomWeights"  # vLLM's `worker_extension_cls`
_PART_ELEMENTS: Final = 1 << 26  # drawn at once, in float32: 256 MiB beside the model


class RandomWeights:
    """What vLLM's worker inherits besides; it imports this by name."""

    model_config: Any
    get_model: Any

    def draw_weights(self) -> int:
        """Draw all weights, the same ones each time; returns how many tensors have been drawn."""
        deviation = weights_deviation(self.model_config.get_hidden_size())
        return draw(self.get_model().named_parameters(), deviation)


def draw(parameters: Iterable[tuple[str, "torch.Tensor"]], deviation: float, seed: int = 0) -> int:
    """Give weights what `write_bench_model` gives them: normal matrices, norms of one, biases of zero.

    All ranks draw the same numbers, so what vLLM keeps on each of them stays equal. Returns how many matrices
    were drawn.
    """
    import torch  # noqa: PLC0415 - takes seconds

    # quantized weights stay as vLLM's loader leaves them: they have scales and layouts of their own
    numbers_of_ours = (torch.float32, torch.bfloat16, torch.float16)
    matrices = 0
    generators: dict[torch.device, torch.Generator] = {}
    with torch.no_grad():
        for name, weights in parameters:
            if weights.dtype not in numbers_of_ours:
                continue
            if weights.dim() < 2:  # noqa: PLR2004 - no matrix
                weights.fill_(0.0 if name.endswith("bias") else 1.0)
                continue
            device = weights.device
            if device not in generators:
                generators[device] = torch.Generator(device=device).manual_seed(seed)
            rows = max(1, _PART_ELEMENTS * len(weights) // weights.numel())
            for part in weights.split(rows):
                numbers = torch.randn(
                    part.shape, generator=generators[device], device=device, dtype=torch.float32
                )
                part.copy_(numbers * deviation)
            matrices += 1
    return matrices
