"""Draws an engine's weights where they lie, on the GPU; vLLM's workers import this by name.

So nothing is written, read or copied: a model of 8 billion parameters has its weights within a second. vLLM's
own dummy weights come first, of which the layers' norms are near zero, too, and with them all that the KV
cache adds to an answer.
"""

from collections.abc import Iterable
from typing import Any, Final

import torch

from kvtier_connector.bench.engines.model import weights_deviation

EXTENSION: Final = f"{__name__}.RandomWeights"
"""vLLM's `worker_extension_cls`."""
_DRAWN: Final = (torch.float32, torch.bfloat16, torch.float16)
"""Quantized weights stay as vLLM's loader leaves them: they have scales and layouts of their own."""
_PART_ELEMENTS: Final = 1 << 26
"""Drawn at once, in float32: 256 MiB beside the model."""


class RandomWeights:
    """What vLLM's worker inherits besides."""

    model_config: Any
    get_model: Any

    def draw_weights(self) -> int:
        """Draw all weights, the same ones each time; returns how many tensors have been drawn."""
        deviation = weights_deviation(self.model_config.get_hidden_size())
        return draw(self.get_model().named_parameters(), deviation)


def draw(parameters: Iterable[tuple[str, torch.Tensor]], deviation: float, seed: int = 0) -> int:
    """Give weights what `write_bench_model` gives them: normal matrices, norms of one, biases of zero.

    All ranks draw the same numbers, so what vLLM keeps on each of them stays equal.

    Args:
        parameters: names and tensors, which are changed.
        deviation: of matrices and embeddings.
        seed: of the numbers.

    Returns:
        How many matrices were drawn.
    """
    drawn = 0
    generators: dict[torch.device, torch.Generator] = {}
    with torch.no_grad():
        for name, weights in parameters:
            if weights.dtype not in _DRAWN:
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
            drawn += 1
    return drawn
