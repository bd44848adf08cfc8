"""Which parts of a load a GPU's step waits for, and when, by how vLLM runs the step."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kvtier_connector.core.copies.copyplan import Layout, Page
from kvtier_connector.core.copies.load_parts import LayerPlace

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

PAGE = 32 << 20
LAYERS = ["first", "second", "third", "draft"]
WHOLE = len(LAYERS)


class Copies:
    """Takes loads, and notes for how many parts steps wait."""

    def __init__(self) -> None:
        self.parts = 0
        self.waited = list[int]()

    def start_load(self, job_id: int, parts: Sequence[object]) -> None:
        del job_id
        self.parts = len(parts)

    def wait_on_device(self, job_id: int, part: int) -> None:
        del job_id
        self.waited.append(part + 1)


class Engine:
    """Runs steps, as vLLM does."""

    def __init__(self, places: list[str]) -> None:
        from vllm.config import CUDAGraphMode  # noqa: PLC0415 - takes seconds

        from kvtier_connector.vllm.copies import layerwise_gpu_loads as module  # noqa: PLC0415 - as above

        self.modes = CUDAGraphMode
        self.copies = Copies()
        pages = tuple(Page(layer << 40, PAGE, layer * PAGE, PAGE) for layer in range(len(LAYERS)))
        self.loads: Any = module.LayerwiseGpuLoads(
            Layout((pages,), 1, len(LAYERS) * PAGE, 1 << 50),
            {name: LayerPlace(0, place * PAGE, PAGE) for place, name in enumerate(LAYERS) if name in places},
            self.copies,
        )
        self._job_id = 0

    def step(self, mode: str, layers: list[str], *, loads: bool = True, halved: bool = False) -> list[int]:
        """Run layers, and return for how many parts the step has waited before it, and before each."""
        context = SimpleNamespace(
            attn_metadata={}, cudagraph_runtime_mode=self.modes[mode], ubatch_slices=[] if halved else None
        )
        if loads:
            self._job_id += 1
            blocks = SimpleNamespace(block_ids=np.array([3, 1], np.int32), group_sizes=[2], block_indices=[0])
            self.loads.start(self._job_id, blocks, np.array([0, 1], np.int32))
        self.loads.begin_forward(context)
        before = [max(self.copies.waited, default=0)]
        for layer in layers:
            if mode != "FULL":
                self.loads.ask(layer)
            before.append(max(self.copies.waited, default=0))
        self.loads.end_forward()
        assert not loads or max(self.copies.waited) == self.copies.parts, "the step leaves a part behind"
        self.copies.waited.clear()
        return before


@pytest.fixture
def engine() -> Engine:
    return Engine(LAYERS)


@pytest.mark.parametrize("mode", ["NONE", "PIECEWISE"])
def test_layers_wait_for_their_own_part_once_they_were_seen_to_ask(engine: Engine, mode: str) -> None:
    assert engine.step(mode, LAYERS) == [1] * 5, "the first load of an engine is there before the step"
    assert engine.step(mode, LAYERS) == [0, 1, 2, 3, 4]


def test_a_way_that_was_not_seen_waits_before_the_step(engine: Engine) -> None:
    engine.step("NONE", LAYERS, loads=False)
    assert engine.step("PIECEWISE", ["second", "third"]) == [WHOLE] * 3
    assert engine.step("PIECEWISE", ["second", "third"]) == [1, 2, 3]
    assert engine.step("NONE", LAYERS) == [1, 1, 2, 3, 3], "layers that ask in every way have parts"


@pytest.mark.parametrize(("mode", "halved"), [("FULL", False), ("NONE", True)])
def test_one_graph_and_two_halves_wait_before_the_step(engine: Engine, mode: str, halved: bool) -> None:
    engine.step("NONE", LAYERS, loads=False)
    assert engine.step(mode, LAYERS, halved=halved) == [WHOLE] * 5


def test_layers_that_do_not_ask_have_their_part_before_the_step(engine: Engine) -> None:
    engine.step("NONE", ["first", "third"], loads=False)
    assert engine.step("NONE", ["first", "third"]) == [1, 2, 3]


def test_what_has_no_place_comes_before_the_step() -> None:
    engine = Engine(["second", "third"])
    engine.step("NONE", LAYERS, loads=False)
    assert engine.step("NONE", LAYERS) == [1, 1, 2, 3, 3]


def test_a_small_load_is_there_before_the_step_whoever_asks(engine: Engine) -> None:
    engine.step("NONE", LAYERS, loads=False)
    engine.loads._layout = replace(engine.loads._layout, groups=((Page(0, 4096, 0, 4096),),))
    assert engine.step("NONE", ["third"]) == [1, 1]


def test_a_draft_after_one_graph_is_not_taken_for_all_layers(engine: Engine) -> None:
    engine.step("FULL", LAYERS)
    engine.loads.ask("draft")  # what computes after the step's forward
    engine.step("NONE", LAYERS)
    assert engine.step("NONE", LAYERS) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("layers", [["first", "third"], ["first", "second"], []])
def test_a_layer_that_computes_without_its_part_ends_the_engine(engine: Engine, layers: list[str]) -> None:
    from kvtier_connector.errors import DeviceError  # noqa: PLC0415 - as its neighbours

    engine.step("NONE", LAYERS, loads=False)
    with pytest.raises(DeviceError, match="has computed without waiting"):
        engine.step("NONE", layers)
