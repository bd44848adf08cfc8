"""Loads to a GPU of which each layer waits for its own part, over a driver that is as late as it may be."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.connector.copies.late_device import Event, LateDevice
from tests.engine.connector.memory_tier import KNOWN, TIER, TOGETHER
from tests.engine.connector.offloading_config import offloading_config
from tests.engine.connector.prompts import (
    BLOCKS,
    PROMPTS,
    SMALL_DEVICE,
    answers,
    metric,
    overwrite,
    prompt,
    tokens_of,
)

from kvtier_connector.config import kv_transfer_config
from kvtier_connector.core.copies.copyplan import Layout, Page

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

if TYPE_CHECKING:
    from vllm import LLM

LAYERS = 6
LONG = PROMPTS[4]  # its last tokens fill no chunk: a step has to compute something
CACHED = 320
SIX_LAYERS: dict[str, object] = {"num_hidden_layers": LAYERS}
# A chunk of 32 tokens has 96 KiB now: as many as before.
TIER_OF_SIX = replace(TIER, cpu_capacity_bytes=3 * TIER.cpu_capacity_bytes)


@pytest.fixture(scope="module")
def cold(engine: Callable[..., Any], model_folder: Callable[..., Any]) -> list[list[int]]:
    """What an engine without a tier answers to LONG and TOGETHER."""
    with engine(model=model_folder(**SIX_LAYERS), **SMALL_DEVICE, enable_prefix_caching=False) as llm:
        return tokens_of([answers(llm, [ids])[0] for ids in [LONG, *TOGETHER]])


SPECULATION = {"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_max": 3, "prompt_lookup_min": 2}


@pytest.fixture(
    scope="module",
    params=[
        {"async_scheduling": True, "max_num_batched_tokens": 256},
        {"speculative_config": SPECULATION, "async_scheduling": False},
    ],
    ids=["asynchronous, in chunks", "speculative"],
)
def of_all(
    request: pytest.FixtureRequest,
    engine: Callable[..., Any],
    model_folder: Callable[..., Any],
    cold: list[list[int]],
    device: LateDevice,
) -> Iterator[Any]:
    """Engines for all tests of this file; one that speculates ends its steps in another order."""
    del cold, device
    transfer = kv_transfer_config(TIER_OF_SIX)
    with engine(transfer, model=model_folder(**SIX_LAYERS), **SMALL_DEVICE, **request.param) as llm:
        assert (
            llm.llm_engine.vllm_config.scheduler_config.async_scheduling is request.param["async_scheduling"]
        )
        for _ in range(2):  # the second time, the first load shows which layers ask
            answers(llm, [LONG])
            overwrite(llm)
        yield llm


@pytest.fixture
def layered(of_all: "LLM") -> "LLM":
    """The same, with nothing in any cache."""
    assert of_all.reset_prefix_cache(reset_connector=True)
    return of_all


def worker() -> Any:  # noqa: ANN401 - a mock's target
    from vllm.distributed.kv_transfer import get_kv_transfer_group  # noqa: PLC0415 - takes seconds

    return get_kv_transfer_group()._worker


def scheduler(llm: "LLM") -> Any:  # noqa: ANN401 - vLLM's
    return llm.llm_engine.engine_core.engine_core.scheduler


def test_each_layer_waits_for_its_own_part(
    layered: "LLM", cold: list[list[int]], parts_waited: list[int]
) -> None:
    answers(layered, [LONG])
    overwrite(layered)
    assert answers(layered, [LONG])[0] == (cold[0], CACHED)
    assert parts_waited == list(range(LAYERS))


def test_several_requests_in_one_step(layered: "LLM", cold: list[list[int]]) -> None:
    failed = metric(layered, "vllm:kvtier_cpu_failed_chunks")
    answers(layered, [KNOWN])
    overwrite(layered)
    assert tokens_of(answers(layered, TOGETHER)) == cold[1:]
    overwrite(layered)
    again = [answers(layered, [ids])[0] for ids in TOGETHER]
    assert tokens_of(again) == cold[1:]
    assert metric(layered, "vllm:kvtier_cpu_failed_chunks") == failed


@pytest.mark.parametrize("part", [0, 3, LAYERS - 1])
def test_a_batch_that_is_refused_is_copied_one_by_one(
    layered: "LLM", cold: list[list[int]], device: LateDevice, part: int
) -> None:
    answers(layered, [LONG])
    overwrite(layered)
    device.fails_at, singly = device.loads + part, device.singly
    failed = metric(layered, "vllm:kvtier_cpu_failed_chunks")
    assert answers(layered, [LONG])[0] == (cold[0], CACHED)
    assert device.singly == singly + CACHED // 32
    assert metric(layered, "vllm:kvtier_cpu_failed_chunks") == failed
    device.fails_at = None


def test_one_of_several_loads_of_a_step_is_refused(
    layered: "LLM", cold: list[list[int]], device: LateDevice
) -> None:
    for ids in [KNOWN, *TOGETHER]:
        answers(layered, [ids])
    overwrite(layered)
    device.fails_at = device.loads
    assert tokens_of(answers(layered, TOGETHER)) == cold[1:]
    device.fails_at = None


def test_what_is_copied_late_does_not_come_over_what_is_computed(layered: "LLM", device: LateDevice) -> None:
    answers(layered, [LONG])
    overwrite(layered)
    answers(layered, [LONG])
    others = [prompt(32 * BLOCKS // 2, seed) for seed in (7, 8)]  # in all of the device's blocks
    first = [answers(layered, [ids], tokens=4)[0][0] for ids in others]
    device.let_time_pass()
    again = [answers(layered, [ids], tokens=4)[0] for ids in others]
    assert tokens_of(again) == first
    assert again[1][1] > 0, "nothing of it is left on the device"


def test_a_step_that_is_replayed_as_a_whole_waits_before_it(
    layered: "LLM", cold: list[list[int]], parts_waited: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kvtier_connector.vllm.copies import layerwise_gpu_loads  # noqa: PLC0415 - imports vLLM

    answers(layered, [LONG])
    overwrite(layered)
    with monkeypatch.context() as patch:
        patch.setattr(layerwise_gpu_loads, "asks_for_layers", lambda _: False)
        assert answers(layered, [LONG])[0] == (cold[0], CACHED)
    assert parts_waited == [LAYERS - 1]


def test_a_reset_keeps_the_memory_of_a_load_that_nobody_has_reported(
    layered: "LLM", cold: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(layered, [LONG])
    overwrite(layered)
    index = scheduler(layered).connector._manager._index
    with monkeypatch.context() as patch:
        patch.setattr(Event, "is_silent", True)
        assert answers(layered, [LONG])[0] == (cold[0], CACHED)
        used = len(index.in_use())
        assert used >= CACHED // 32
        assert layered.reset_prefix_cache(reset_connector=True)
        assert index.reservable <= index.capacity - used, "memory was given away that is still read"
    assert answers(layered, [LONG])[0] == (cold[0], 0)
    answers(layered, [PROMPTS[0]])
    assert index.reservable + len(index.in_use()) == index.capacity


@pytest.mark.parametrize("is_set", [False, True])
def test_nothing_is_in_parts_without_the_setting(device: LateDevice, is_set: bool) -> None:
    from kvtier_connector.vllm.copies.copier_cuda import CudaCopier  # noqa: PLC0415 - imports vLLM
    from kvtier_connector.vllm.spec import KVTierOffloadingSpec  # noqa: PLC0415 - as above

    del device
    spec = KVTierOffloadingSpec(offloading_config())
    spec.settings = replace(spec.settings, layered_loads=is_set)
    pages = tuple(Page(layer << 30, 4096, layer * 4096, 4096) for layer in range(LAYERS))
    layout = Layout((pages,), 1, LAYERS * 4096, 1 << 40)
    assert (spec._layerwise_gpu_loads(layout, CudaCopier()) is not None) is is_set
