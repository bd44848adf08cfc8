"""Real vLLM engines on the CPU, as small as they get: two layers, random weights, prompts as token ids."""

import gc
import importlib
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.shared.newer_vllm import engines_environment, use_newer_vllm

from kvtier_connector.bench.model import write_bench_model

# Before any test of this process imports vLLM.
use_newer_vllm(lambda line: print(line, file=sys.stderr, flush=True))  # noqa: T201 - whoever waits

os.environ.update(
    VLLM_CPU_KVCACHE_SPACE="1",
    VLLM_CPU_OMP_THREADS_BIND="nobind",
    # Threads of one operation wait for each other: where something else runs on one of two cores, a step
    # of two threads takes 90 ms instead of 1.
    OMP_NUM_THREADS="1",
    # Where there are several all the same, those that wait leave the core to others.
    OMP_WAIT_POLICY="passive",
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


@contextmanager
def _without_llvmlite() -> Iterator[None]:
    """vLLM 0.32 looks through all modules (triton_utils/dispatcher.py) and stumbles over one of llvmlite's.

    Index and picker bring it into this process; where vLLM looks is a process of its own, a user's worker.
    """
    importlib.import_module("numba")  # now, so that nobody brings it back
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "llvmlite.binding.ffi")
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


@contextmanager
def _in_this_process() -> Iterator[None]:
    """Have an engine run in this process, on one thread as its own processes do (OMP_NUM_THREADS).

    All engines of a process have as many threads: where a processor has no AVX-512, those that have fewer
    than an earlier one compute wrong tokens in vLLM 0.32, with or without a connector.
    """
    import torch  # noqa: PLC0415 - takes seconds

    threads = torch.get_num_threads()
    torch._C.set_num_threads(1)  # vLLM replaces the public one, by nothing
    try:
        with _without_llvmlite(), pytest.MonkeyPatch.context() as patch:
            patch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
            yield
    finally:
        torch._C.set_num_threads(threads)


@pytest.fixture(scope="session")
def engine(model_folder: Callable[..., Path]) -> Engine:
    """Return a context manager that runs an engine in this process and stops it.

    With `processes=True` it has processes of its own, as `vllm serve` has, and takes much longer to start.
    """

    @contextmanager
    def run(
        transfer: dict[str, Any] | None = None,
        *,
        model: Path | None = None,
        processes: bool = False,
        **settings: object,
    ) -> Iterator[Any]:
        from vllm import LLM  # noqa: PLC0415 - takes seconds, and only these tests need it

        with pytest.MonkeyPatch.context() as patch, nullcontext() if processes else _in_this_process():
            for name, value in engines_environment().items():
                patch.setenv(name, value)
            llm = LLM(
                str(model or model_folder()),
                skip_tokenizer_init=True,
                dtype="float32",
                enforce_eager=True,
                max_model_len=1024,
                max_num_seqs=8,
                disable_log_stats=False,
                kv_transfer_config=transfer,
                **({"block_size": 32} | settings),
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
