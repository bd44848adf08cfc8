"""Real vLLM engines on the CPU, as small as they get: two layers, random weights, prompts as token ids."""

import gc
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kvtier_connector.bench.model import write_bench_model

os.environ.update(
    VLLM_CPU_KVCACHE_SPACE="1",
    VLLM_CPU_OMP_THREADS_BIND="nobind",
    VLLM_LOGGING_LEVEL="WARNING",
    HF_HUB_OFFLINE="1",
)

# The bench's Llama, but smaller.
LLAMA: dict[str, object] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 128,
    "vocab_size": 512,
    "max_position_embeddings": 2048,
    "torch_dtype": "float32",
}

Engine = Callable[..., AbstractContextManager[Any]]


@pytest.fixture(scope="package", autouse=True)
def _without_llvmlite() -> Iterator[None]:
    """vLLM 0.32 looks through all modules (triton_utils/dispatcher.py) and stumbles over one of llvmlite's.

    The picker's kernels bring it into this process; an engine and a picker have a process each.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "llvmlite.binding.ffi", raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def _sockets() -> Iterator[None]:
    """vLLM leaves its sockets behind. Their paths may have 107 bytes, too few for pytest's own folders."""
    with tempfile.TemporaryDirectory(prefix="kvtier-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_RPC_BASE_PATH", folder)
        yield


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that writes a model, with changes, and gives its folder."""

    def write(**changes: object) -> Path:
        return write_bench_model(tmp_path_factory.mktemp("model"), **(LLAMA | changes))

    return write


@pytest.fixture(scope="session")
def engine(model_folder: Callable[..., Path]) -> Engine:
    """Return a context manager that runs an engine and stops it."""

    @contextmanager
    def run(
        transfer: dict[str, Any] | None = None, *, model: Path | None = None, **settings: object
    ) -> Iterator[Any]:
        from vllm import LLM  # noqa: PLC0415 - takes seconds, and only these tests need it

        llm = LLM(
            str(model or model_folder()),
            skip_tokenizer_init=True,
            dtype="float32",
            enforce_eager=True,
            max_model_len=1024,
            block_size=32,
            max_num_seqs=8,
            disable_log_stats=False,
            kv_transfer_config=transfer,
            **settings,
        )
        try:
            yield llm
        finally:
            llm.llm_engine.engine_core.shutdown()
            del llm
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # vLLM leaves sockets to the garbage collector
                gc.collect()

    return run
