"""A reset of the cache frees no memory that a transfer still reads or writes."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.engine.connector.memory_tier import TIER
from tests.engine.connector.offloading_config import offloading_config
from tests.engine.connector.prompts import PROMPTS, SMALL_DEVICE, answers

from kvtier_connector.config import kv_transfer_config
from kvtier_connector.core.region.growth import Grown

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

SLOTS = 8


def keys_of(*numbers: int) -> list[Any]:
    from vllm.v1.kv_offload.base import make_offload_key  # noqa: PLC0415 - takes seconds

    return [make_offload_key(number.to_bytes(32, "big"), 0) for number in numbers]


class Scene:
    """A manager of a small tier, asked as vLLM asks it."""

    def __init__(self) -> None:
        from vllm.v1.kv_offload.base import ReqContext  # noqa: PLC0415 - takes seconds

        from kvtier_connector.vllm.spec import KVTierOffloadingSpec  # noqa: PLC0415 - takes seconds

        self.manager = KVTierOffloadingSpec(offloading_config()).get_manager()
        self.manager.grow(Grown(SLOTS, 0, is_over=True))
        self.context = ReqContext("a")

    def begin_store(self, *numbers: int) -> set[int]:
        """Return the slots that the chunks are copied to."""
        prepared = self.manager.prepare_store(keys_of(*numbers), self.context)
        return set(prepared.store_spec.slots.tolist())

    def store(self, *numbers: int) -> set[int]:
        """The same, and the chunks are there; as many of them as there is room for."""
        prepared = self.manager.prepare_store(keys_of(*numbers), self.context)
        self.manager.complete_store(prepared.keys_to_store, self.context)
        return set(prepared.store_spec.slots.tolist())

    def begin_load(self, *numbers: int) -> set[int]:
        return set(self.manager.prepare_load(keys_of(*numbers), self.context).slots.tolist())


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_memory_of_a_store_in_flight_is_filled_again_when_all_have_reported(scene: Scene) -> None:
    late = scene.begin_store(1, 2, 3)
    scene.manager.reset_cache()
    others = scene.store(*range(10, 30))
    assert len(others) == SLOTS - 3
    assert not others & late
    scene.manager.on_reset_flushed()
    assert scene.store(*range(30, 33)) == late


def test_memory_of_a_load_in_flight_keeps_its_bytes(scene: Scene) -> None:
    scene.store(1, 2, 3)
    late = scene.begin_load(1, 3)
    scene.manager.reset_cache()
    others = scene.store(*range(10, 30))
    assert len(others) == SLOTS - 2
    assert not others & late
    scene.manager.on_reset_flushed()
    assert scene.store(30, 31) == late


def test_a_second_reset_before_all_have_reported(scene: Scene) -> None:
    first = scene.begin_store(1)
    scene.manager.reset_cache()
    second = scene.begin_store(2)
    scene.manager.reset_cache()
    assert not (first | second) & scene.store(*range(10, 30))
    scene.manager.on_reset_flushed()
    assert scene.store(30, 31) == first | second


def test_nothing_is_withheld_where_nothing_is_in_flight(scene: Scene) -> None:
    scene.store(1, 2)
    scene.manager.reset_cache()
    assert len(scene.begin_store(*range(10, 30))) == SLOTS


@pytest.fixture
def scheduler(engine: Callable[..., Any]) -> Iterator[Any]:
    """The scheduler of an engine with a tier that has been asked something, and its engine."""
    with engine(kv_transfer_config(TIER), **SMALL_DEVICE) as llm:
        yield llm.llm_engine.engine_core.engine_core.scheduler, llm


def test_an_engine_tells_when_all_have_reported(scheduler: tuple[Any, Any]) -> None:
    of_engine, llm = scheduler
    connector = of_engine.connector
    index = connector._manager._index
    answers(llm, [PROMPTS[-1]], tokens=1)  # its stores would begin with the next step
    assert connector._upstream.reports_due, "every store has ended already"
    under_way = len(index.in_use())
    assert llm.reset_prefix_cache(reset_connector=True)
    assert index.reservable == index.capacity - under_way < index.capacity
    answers(llm, [PROMPTS[1]])
    answers(llm, [PROMPTS[2]])
    assert index.reservable + len(index.in_use()) == index.capacity
    assert answers(llm, [PROMPTS[-1]])[0][0] == answers(llm, [PROMPTS[-1]])[0][0]
