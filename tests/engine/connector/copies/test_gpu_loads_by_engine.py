"""Loads within steps of a GPU, of engines and models that each need an engine of their own."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engine.connector.copies.late_device import WAITS_FOLDER, LateDevice
from tests.engine.connector.memory_tier import TIER
from tests.engine.connector.prompts import PROMPTS, SMALL_DEVICE, answers, overwrite, tokens_of

from kvtier_connector.config import kv_transfer_config

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

LONG = PROMPTS[4]  # its last tokens fill no chunk: a step has to compute something
CACHED = 320
LARGER_TIER = replace(TIER, cpu_capacity_bytes=3 * TIER.cpu_capacity_bytes)


def no_memory(*_: object, **__: object) -> None:
    raise MemoryError("the test's")


@pytest.mark.parametrize("is_lost", [True, False], ids=["its device copies no more", "it cannot be planned"])
def test_an_engine_that_cannot_begin_a_load_ends(
    is_lost: bool, engine: Callable[..., Any], device: LateDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kvtier_connector.errors import DeviceError  # noqa: PLC0415 - as its neighbours
    from kvtier_connector.vllm.copies.copier_cuda import CudaCopier  # noqa: PLC0415 - as above

    with engine(kv_transfer_config(TIER), **SMALL_DEVICE) as llm:
        answers(llm, [LONG])
        overwrite(llm)
        if is_lost:
            monkeypatch.setattr(device, "fails_at", device.loads)
            monkeypatch.setattr(device, "is_lost", True)
        else:
            monkeypatch.setattr(CudaCopier, "_descriptors", no_memory)
        why = "takes no copies any more" if is_lost else "cannot be begun, so the engine ends: MemoryError"
        with pytest.raises(DeviceError, match=why):
            answers(llm, [LONG])


WINDOWS: dict[str, object] = {
    "model_type": "gemma3_text",
    "num_hidden_layers": 4,
    "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
    "sliding_window": 64,
    "sliding_window_pattern": 4,
    "query_pre_attn_scalar": 32,
    "hidden_activation": "gelu_pytorch_tanh",
    "tie_word_embeddings": True,
}


def test_a_model_with_windows_loads_within_steps(
    engine: Callable[..., Any],
    model_folder: Callable[..., Any],
    device: LateDevice,
    parts_waited: list[int],
) -> None:
    del device
    with engine(kv_transfer_config(LARGER_TIER), model=model_folder(**WINDOWS), async_scheduling=True) as llm:
        first = [answers(llm, [ids])[0] for ids in PROMPTS]
        assert llm.reset_prefix_cache()  # its device is so large that other blocks are handed out
        warm = [answers(llm, [ids])[0] for ids in PROMPTS]
    assert tokens_of(warm) == tokens_of(first)
    assert warm[-1][1] >= 576
    assert max(parts_waited) > 1, "no layer has waited for its own part"


def test_loads_are_apart_if_that_is_asked_for(
    engine: Callable[..., Any], device: LateDevice, parts_waited: list[int]
) -> None:
    del device
    with engine(kv_transfer_config(replace(TIER, layered_loads=False)), **SMALL_DEVICE) as llm:
        first = answers(llm, [LONG])[0][0]
        overwrite(llm)
        assert answers(llm, [LONG])[0] == (first, CACHED)
    assert not parts_waited


@pytest.fixture
def late_connector(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The module that changes every process that imports it, also this one, for as long as the test runs."""
    monkeypatch.setenv(WAITS_FOLDER, str(tmp_path))
    name = "tests.engine.connector.copies.late_connector"
    yield name
    if (module := sys.modules.pop(name, None)) is not None:
        module.undo()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_every_rank_waits_for_its_own_parts(
    engine: Callable[..., Any], late_connector: str, tmp_path: Path
) -> None:
    transfer = kv_transfer_config(LARGER_TIER) | {"kv_connector_module_path": late_connector}
    ranks = {"tensor_parallel_size": 2, "async_scheduling": True}
    with engine(transfer, processes=True, **ranks, **SMALL_DEVICE) as llm:
        first = [answers(llm, [ids])[0] for ids in PROMPTS]
        overwrite(llm)
        warm = [answers(llm, [ids])[0] for ids in PROMPTS]
    assert tokens_of(warm) == tokens_of(first)
    assert warm[4][1] == CACHED
    waits = [[int(part) for part in file.read_text().split()] for file in tmp_path.iterdir()]
    assert len(waits) == 2, "a rank has loaded apart from its steps"
    assert all(max(parts) > 0 for parts in waits), "no layer has waited for its own part"


def test_a_drafts_layers_have_their_part_too(
    engine: Callable[..., Any],
    model_folder: Callable[..., Path],
    device: LateDevice,
    parts_waited: list[int],
) -> None:
    from vllm.config import LoadConfig  # noqa: PLC0415 - takes seconds

    del device
    draft: dict[str, object] = {"model": str(model_folder(num_hidden_layers=2)), "method": "eagle"}
    draft |= {"num_speculative_tokens": 2, "draft_load_config": LoadConfig(load_format="dummy")}
    drafting = {"speculative_config": draft, "async_scheduling": True}
    with engine(kv_transfer_config(LARGER_TIER), **drafting, **SMALL_DEVICE) as llm:
        first = [answers(llm, [ids])[0] for ids in PROMPTS]
        overwrite(llm)
        warm = [answers(llm, [ids])[0] for ids in PROMPTS]
    assert tokens_of(warm) == tokens_of(first)
    assert warm[-1][1] > 0
    assert max(parts_waited) > 0, "no layer has waited for its own part"
