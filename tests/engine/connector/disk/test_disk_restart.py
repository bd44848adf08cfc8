"""Engines that end in one process and start again in another."""

import logging
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from tests.engine.connector.disk_engine import CHUNK_BYTES, DiskEngine, tier
from tests.engine.connector.prompts import (
    CACHED,
    PROMPTS,
    SMALL_DEVICE,
    answers,
    metric,
    overwrite,
    tokens_of,
)

from kvtier_connector.config import MIB, kv_transfer_config
from kvtier_connector.supported import minor_of

# What vLLM and PyTorch warn of is not ours.
pytestmark = [
    pytest.mark.engine,
    pytest.mark.usefixtures("disk_pays"),
    pytest.mark.filterwarnings("ignore"),
]


def test_an_engine_that_is_killed_and_started_again(
    engine: Callable[..., Any], model_folder: Callable[..., Path], cold: list[list[int]], tmp_path: Path
) -> None:
    settings = SMALL_DEVICE | {"model": model_folder()}
    transfer = kv_transfer_config(tier(tmp_path / "disk", 8 * MIB))
    with engine(transfer, processes=True, **settings) as llm:
        assert tokens_of([answers(llm, [ids])[0] for ids in PROMPTS]) == cold
        while metric(llm, "vllm:kvtier_disk_store_bytes") < sum(CACHED) // 32 * CHUNK_BYTES:
            # A slow disk was spared a part of the chunks, and is given it when they are used again.
            assert tokens_of([answers(llm, [ids])[0] for ids in PROMPTS]) == cold
        overwrite(llm)
        loaded = metric(llm, "vllm:kv_offload_load_bytes")
        assert [answers(llm, [ids])[0] for ids in PROMPTS] == list(zip(cold, CACHED, strict=True))
        assert metric(llm, "vllm:kv_offload_load_bytes") - loaded == sum(CACHED) // 32 * CHUNK_BYTES
        for process in llm.llm_engine.engine_core.resources.engine_manager.processes:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
    with engine(transfer, **settings) as llm:
        found = [answers(llm, [ids])[0] for ids in PROMPTS]
    assert tokens_of(found) == cold
    assert [cached for _, cached in found] == CACHED


def test_weights_that_were_trained_on_find_nothing(
    engine: Callable[..., Any], model_folder: Callable[..., Path], cold: list[list[int]], tmp_path: Path
) -> None:
    transfer = kv_transfer_config(tier(tmp_path / "disk"))
    model = model_folder()
    with engine(transfer, model=model, **SMALL_DEVICE) as llm:
        assert tokens_of([answers(llm, [ids])[0] for ids in PROMPTS]) == cold
    (file,) = model.glob("*.safetensors")
    trained = {name: tensor * 1.01 for name, tensor in load_file(file).items()}
    save_file(trained, file, {"format": "pt"})
    with engine(transfer, model=model, **SMALL_DEVICE) as llm:
        found = [answers(llm, [ids])[0] for ids in PROMPTS]
    assert [cached for _, cached in found] == [0] * len(PROMPTS)
    assert len([path for path in (tmp_path / "disk").iterdir() if path.is_dir()]) == 1


def test_a_patch_release_of_vllm_finds_all_and_another_minor_nothing(  # noqa: PLR0913, PLR0917 - fixtures
    disk_engine: DiskEngine,
    known: Path,
    cold: list[list[int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    request: pytest.FixtureRequest,
) -> None:
    """The second starts cold, and says what that costs."""
    import vllm  # noqa: PLC0415 - takes seconds

    log = logging.getLogger("vllm.kvtier")
    log.addHandler(caplog.handler)
    request.addfinalizer(lambda: log.removeHandler(caplog.handler))
    minor = minor_of(vllm.__version__)
    folder = Path(shutil.copytree(known, tmp_path / "disk"))

    monkeypatch.setattr(vllm, "__version__", f"{minor}.99")
    disk_engine.restart(folder)
    assert disk_engine.ask() == (cold, CACHED)
    assert "removed" not in caplog.text

    monkeypatch.setattr(vllm, "__version__", "0.99.0")
    disk_engine.restart(folder)
    assert disk_engine.ask() == (cold, [0] * len(PROMPTS))
    (told,) = {record.getMessage() for record in caplog.records if "removed" in record.getMessage()}
    assert "39 chunks with 1248 tokens" in told
    assert told.endswith(f'it differs in vllm ("{minor}" -> "0.99")')
