"""How a run of `kvtier bench connector` measures: what every part is told."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kvtier_connector.bench.engines.given import Given
from kvtier_connector.bench.engines.model import write_bench_model


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run.

    Attributes:
        model: Folder of a model with weights; None for random ones.
        shape: Sizes of the model with random weights.
        scratch: Folder for that model.
        out: File of the report, beside which logs are.
        folder: On the disk to be measured.
        prompt_tokens: Prompt length of the parts that measure time to first token.
        repeats: Their prompts.
        gpu: The GPU's name; empty where vLLM computes on the CPU.
        sides: What is compared on a GPU.
        turns: Lives of each of them.
        given: vLLM's arguments for the engines of ttft and workloads.
        say: Is told how far a part is.
    """

    model: Path | None
    shape: str
    scratch: Path
    out: Path
    folder: Path
    prompt_tokens: int
    repeats: int
    gpu: str
    sides: tuple[str, ...]
    turns: int
    given: Given
    say: Callable[[str], None]

    def log(self, name: str) -> Path:
        """Return a file beside the report for the engines' output."""
        return self.out.parent / f"connector-{name}.log"

    def weights(self) -> Path:
        """Return the folder of a model with weights; random ones are written for the first part that asks."""
        if self.model is not None:
            return self.model
        folder = self.scratch / "weights"
        return folder if folder.exists() else write_bench_model(folder, self.shape)
