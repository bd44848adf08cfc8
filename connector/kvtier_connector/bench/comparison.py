"""Sides that are compared, one engine at a time, in turns: what all of them get, and one engine's life."""

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from typing_extensions import Self

from kvtier_common.formats.json_text import json_file
from kvtier_connector.bench import engine
from kvtier_connector.bench.choices import KVTIER, NONE, SIDES, TURNS
from kvtier_connector.bench.engine import BenchEngine, bench_engine
from kvtier_connector.bench.load import kv_bytes_per_token
from kvtier_connector.bench.measure import Run
from kvtier_connector.bench.model import EXTENSION, write_bench_config
from kvtier_connector.bench.sides import SideEngine, SideSetup, absent, side_engine
from kvtier_connector.bench.vllm_arguments import NO_SERVE_OPTIONS, ServeOptions
from kvtier_connector.config import MIB, ConnectorConfig, kv_transfer_config
from kvtier_connector.errors import ConnectorError

_BLOCK_TOKENS: Final = 16  # vLLM's block on CUDA (config/cache.py)
_CPU_BLOCK_TOKENS: Final = 32  # the smallest block that vLLM's CPU attention likes (platforms/cpu.py)
PINNING_TIMEOUT_S: Final = 120.0
"""Until an engine that page-locks its tier while it serves is at rest: 200 GiB at 0.56 s each."""
_CHUNK_TOKENS: Final = (
    64  # kvtier_connector.config, `blocks_per_chunk`: 64 tokens suit GPUs; a CPU has a block
)
_DRAWN: Final = {"load_format": "dummy", "worker_extension_cls": EXTENSION}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Sides, and what all of them get."""

    model: Path  # folder of the model; all its layers have full attention
    drawn: bool = True  # whether the folder has no weights, so that each engine draws them on its GPU
    sides: tuple[str, ...] = SIDES  # what is compared, by name
    turns: int = TURNS  # lives of each side
    # arguments for all engines; a tier among them is kvtier's, and vLLM's own has as many bytes
    serve_options: ServeOptions = NO_SERVE_OPTIONS
    block_tokens: int = _BLOCK_TOKENS  # tokens of a KV block where no arguments are given
    chunk_tokens: int = _CHUNK_TOKENS  # tokens that kvtier stores together, at least a block
    device: str = ""  # what computes, for people
    disks: Path | None = None  # folder for what sides keep on a disk; that of temporary files if None

    @classmethod
    def of(cls, run: Run) -> Self:
        """Return what a run compares; without a model of its own each engine draws one on its GPU."""
        drawn = bool(run.gpu) and run.model is None
        for side in run.sides:
            if reason := absent(side):
                raise ConnectorError(f"--sides: {side}: {reason}")
        return cls(
            model=write_bench_config(run.scratch / "config", run.shape) if drawn else run.weights(),
            drawn=drawn,
            sides=(run.sides or SIDES) if run.gpu else (NONE, KVTIER),  # vLLM's own needs a GPU
            turns=run.turns,
            serve_options=run.serve_options,
            block_tokens=_BLOCK_TOKENS if run.gpu else _CPU_BLOCK_TOKENS,
            chunk_tokens=_CHUNK_TOKENS if run.gpu else _CPU_BLOCK_TOKENS,
            device=run.gpu or "cpu",
            disks=run.out.parent,
        )

    def order(self) -> Iterator[tuple[int, str]]:
        """Give turns and sides in the order of their lives.

        Every other turn goes backwards, so that what drifts, such as a GPU's clock, is the same for all.
        """
        for turn in range(self.turns):
            for side in self.sides if turn % 2 == 0 else reversed(self.sides):
                yield turn, side

    def token_bytes(self) -> int:
        """Return what a token's KV cache takes on all ranks together; heads too few to share are repeated."""
        config = json_file(self.model / "config.json")
        element_bytes = 4 if self.serve_options.dtype in {"float", "float32"} else 2
        if self.serve_options.cache_dtype.startswith("fp8"):
            element_bytes = 1
        heads: int = config.get("num_key_value_heads") or config["num_attention_heads"]
        repeated = max(self.serve_options.ranks // heads, 1)
        return kv_bytes_per_token(config, element_bytes) * repeated

    def settings(self, *, device_tokens: int, longest_tokens: int) -> dict[str, Any]:
        """Return the arguments of vLLM's `LLM` that all sides have; `longest_tokens` with the answer."""
        block_tokens = self.serve_options.block_tokens or self.block_tokens
        # Compiling and graphs speed up an answer's tokens, not a prompt, and cost a minute a start.
        defaults = {"dtype": "bfloat16", "block_size": self.block_tokens, "enforce_eager": True}
        blocks = math.ceil(device_tokens / block_tokens) + 1  # vLLM keeps one to itself
        return {
            **({} if self.serve_options.arguments else defaults),
            **(_DRAWN if self.drawn else {}),
            "model": str(self.model),
            "max_model_len": longest_tokens,
            "kv_cache_memory_bytes": blocks * block_tokens * self.token_bytes() // self.serve_options.ranks,
        }

    def _blocks_per_chunk(self) -> int:
        if self.serve_options.transfer is not None:
            return int(self.serve_options.transfer["kv_connector_extra_config"].get("blocks_per_chunk", 1))
        return max(self.chunk_tokens // (self.serve_options.block_tokens or self.block_tokens), 1)

    def comparable_tokens(self, prompt_tokens: int) -> int:
        """Return the length nearest below of which the device's cache and the tier have the same tokens.

        A hit computes the rest: more of it takes longer, and rounds differently in bfloat16.
        """
        block_tokens = self.serve_options.block_tokens or self.block_tokens
        chunk_tokens = self._blocks_per_chunk() * block_tokens
        whole_tokens = (prompt_tokens - 1) // chunk_tokens * chunk_tokens
        return min(prompt_tokens, whole_tokens + block_tokens)

    def tier_bytes(self, tokens: int) -> int:
        """Return the size of the tiers: that of a given one, or what so many tokens take."""
        if self.serve_options.transfer is not None:
            return int(self.serve_options.transfer["kv_connector_extra_config"]["cpu_capacity_bytes"])
        return math.ceil(tokens * self.token_bytes() / MIB) * MIB

    def tier(self, tokens: int) -> dict[str, Any]:
        """Return the `kv_transfer_config` of kvtier's connector: a given one, or one with room for tokens."""
        if self.serve_options.transfer is not None:
            return dict(self.serve_options.transfer)
        return kv_transfer_config(
            ConnectorConfig(
                cpu_capacity_bytes=self.tier_bytes(tokens), blocks_per_chunk=self._blocks_per_chunk()
            )
        )

    def side(self, side: str, tier_tokens: int, folder: Path, sockets: Path) -> SideEngine:
        """Return what a side gives its engine, with a tier of so many tokens and empty folders."""
        setup = SideSetup(
            tier=self.tier(tier_tokens),
            capacity_bytes=self.tier_bytes(tier_tokens),
            ranks=self.serve_options.ranks,
            block_tokens=self.serve_options.block_tokens or self.block_tokens,
            folder=folder,
            sockets=sockets,
        )
        return side_engine(side, setup)

    @contextmanager
    def life(
        self,
        side: str,
        settings: dict[str, Any],
        *,
        tier_tokens: int,
        log: Path,
        module: str = engine.__name__,
    ) -> Iterator[BenchEngine]:
        """Run one engine of a side, over settings that all sides have; nothing of it stays."""
        with (
            tempfile.TemporaryDirectory(prefix="kvtier-") as sockets,
            tempfile.TemporaryDirectory(prefix="kvtier-", dir=self.disks) as folder,
        ):
            made = self.side(side, tier_tokens, Path(folder), Path(sockets))
            with bench_engine(
                settings | made.arguments(),
                serve_options=self.serve_options,
                variables=made.variables,
                log=log,
                module=module,
            ) as running:
                yield running
