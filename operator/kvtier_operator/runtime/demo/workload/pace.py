"""How fast this machine computes a model's prompts, measured in seconds, before any engine starts.

A prefill's time is that of two kinds of matrix products: with the weights, which grows with the tokens, and
of attention, which grows with their square. Both are timed here at the model's own sizes, in a process of
their own, so that the demo can choose prompts that it will be done with.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from kvtier_operator.errors import RuntimeFailedError

_TOKENS: Final = 1024
_REPEATS: Final = 3
# Beside the products, an engine copies, normalizes, samples: a prompt took 1.3 to 1.6 times their time.
_ALL_ELSE: Final = 1.6


@dataclass(frozen=True, slots=True)
class Pace:
    """What a prompt of n tokens takes: `token_s` * n + `pair_s` * n * n seconds.

    Attributes:
        token_s: Seconds for each token.
        pair_s: Seconds for each token and token before it.
    """

    token_s: float
    pair_s: float

    def prompt_s(self, tokens: int) -> float:
        """Seconds to compute a prompt."""
        return (self.token_s + self.pair_s * tokens) * tokens

    def fitting_tokens(self, within_s: float, *, fewest: int, most: int, step: int = 500) -> int:
        """The longest prompt, from `fewest` to `most` tokens, that is computed in the time."""
        fitting = (tokens for tokens in range(most, fewest, -step) if self.prompt_s(tokens) <= within_s)
        return next(fitting, fewest)


def measure_pace(model: Path) -> Pace:
    """Measure with the sizes of a model's `config.json`, which takes a few seconds.

    Raises:
        RuntimeFailedError: The file lacks a size, or the products failed.
    """
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
            _ALL_ELSE * layers * _fastest_s(layer) / _TOKENS,
            _ALL_ELSE * layers * _fastest_s(attention) / _TOKENS**2,
        )


def _fastest_s(run: Callable[[], None]) -> float:
    times = []
    for _ in range(_REPEATS + 1):  # the first makes room
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    try:
        config = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
        # a model that also takes images has its language model's sizes there
        measured = _measure(config | config.get("text_config", {}))
    except KeyError as missing:
        sys.exit(f"{sys.argv[1]}: {missing} is missing")
    sys.stdout.write(json.dumps(asdict(measured)))
