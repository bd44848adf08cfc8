"""What is fetched ahead of its request keeps within its bounds, and takes nothing from those who wait."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from tests.engine.connector.disk.promotions_scene import Scene, key_of

from kvtier_common.hints import Priority
from kvtier_connector.core.index.hints import BlockHint
from kvtier_connector.core.index.index import BlockState
from kvtier_connector.vllm.behind import prefetches as module
from kvtier_connector.vllm.behind.prefetches import MOST_UNDER_WAY, Chunk, Fetched, Prefetches
from kvtier_connector.vllm.behind.promotions import Promotions

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


@dataclass
class _Tiers:
    """What a prefetch asks of the tiers of an engine."""

    promotions: Promotions

    def poll(self) -> None:
        """The test says what has happened."""

    def on_schedule_end(self) -> None:
        self.promotions.begin()


def _prefetches(scene: Scene) -> Prefetches:
    return Prefetches(scene.memory, _Tiers(scene.promotions))


def _chunks(numbers: Sequence[int]) -> list[Chunk]:
    return [Chunk(number, key_of(number)) for number in numbers]


def test_chunks_come_from_the_disk_and_then_belong_to_nobody() -> None:
    scene = Scene(40, on_disk=[2, 3])
    scene.put_in_memory(1)
    prefetches = _prefetches(scene)
    name, fetched = prefetches.begin(_chunks([1, 2, 3, 4]))
    assert fetched == Fetched(here=1, coming=2, absent=1)
    assert [len(prefetches), name in prefetches] == [1, True]
    scene.arrive(2)
    assert prefetches.look(name) == Fetched(2, 1, 1)
    scene.arrive(3)
    assert prefetches.look(name) == Fetched(3, 0, 1)
    assert name not in prefetches
    scene.assert_nothing_is_kept()
    assert scene.look_up("a", 1, 2, 3) == [BlockState.READY] * 3


def test_those_under_way_take_a_quarter_of_the_memory_together() -> None:
    scene = Scene(16, on_disk=range(100))
    prefetches = _prefetches(scene)
    assert prefetches.begin(_chunks(range(3)))[1] == Fetched(0, 3, 0)
    assert prefetches.begin(_chunks(range(10, 20)))[1] == Fetched(0, 1, 9)
    assert prefetches.begin(_chunks(range(20, 30)))[1] == Fetched(0, 0, 10)
    scene.arrive(0, 1, 2)
    prefetches.look("kvtier-prefetch-1")
    assert prefetches.begin(_chunks(range(20, 30)))[1] == Fetched(0, 3, 7), "what has ended makes room"


def test_what_has_come_counts_until_its_prefetch_ends() -> None:
    scene = Scene(16, on_disk=range(100))
    prefetches = _prefetches(scene)
    for first in (0, 10, 20, 30):
        name, fetched = prefetches.begin(_chunks(range(first, first + 4)))
        if fetched.coming:
            scene.arrive(*range(first, first + fetched.coming - 1))  # the last one keeps it waiting
            prefetches.look(name)
    assert scene.memory.capacity - scene.memory.reservable <= 4, "a quarter of the memory"


def test_what_is_retained_does_not_leave_for_it() -> None:
    scene = Scene(10, on_disk=[50, 51, 52])
    retained = [key_of(number) for number in range(3)]
    scene.memory.reserve(retained, hint=BlockHint(until_s=1e9, priority=Priority.HIGH))
    scene.memory.commit(retained)
    scene.put_in_memory(*range(10, 17))
    scene.memory.hold([key_of(number) for number in range(10, 16)])  # that others use
    assert scene.memory.promised == 3
    assert _prefetches(scene).begin(_chunks([50, 51, 52]))[1] == Fetched(0, 1, 2)
    assert all(scene.memory.state(key) is BlockState.READY for key in retained)


def test_it_is_read_also_where_computing_is_sooner_as_nobody_waits() -> None:
    scene = Scene(40, on_disk=[1, 2])
    scene.decision.never, scene.decision.too_few = True, 100
    assert _prefetches(scene).begin(_chunks([1, 2]))[1] == Fetched(0, 2, 0)


def test_one_that_is_let_go_of_holds_nothing() -> None:
    scene = Scene(40, on_disk=[1, 2])
    prefetches = _prefetches(scene)
    name, _ = prefetches.begin(_chunks([1, 2]))
    scene.arrive(1)
    prefetches.end(name)
    scene.arrive(2)
    scene.assert_nothing_is_kept()


def test_a_long_one_is_looked_at_in_parts_and_only_where_something_is_coming(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_LOOKED_AT", 3)
    scene = Scene(80, on_disk=range(10, 18))
    scene.put_in_memory(*range(10))
    prefetches = _prefetches(scene)
    looked_at = list[bytes]()
    lookup = scene.promotions.lookup

    def noted(key: bytes, *arguments: Any, **named: Any) -> BlockState:  # noqa: ANN401 - as they come
        looked_at.append(key)
        return lookup(key, *arguments, **named)

    monkeypatch.setattr(scene.promotions, "lookup", noted)
    name, fetched = prefetches.begin(_chunks(range(20)))
    assert (fetched, looked_at) == (Fetched(10, 10, 0), [key_of(number) for number in (10, 11, 12)])
    for unseen in (True, True, True, False):
        assert prefetches.has_unseen(name) == unseen
        fetched = prefetches.look(name)
    assert fetched == Fetched(10, 8, 2)
    assert set(looked_at) == {key_of(number) for number in range(10, 20)}
    scene.arrive(*range(10, 18))
    while name in prefetches:
        looked_at.clear()
        fetched = prefetches.look(name)
        assert len(looked_at) <= 3
    assert fetched == Fetched(18, 0, 2)
    scene.assert_nothing_is_kept()


def test_only_so_many_are_under_way() -> None:
    scene = Scene(1000, on_disk=range(100))
    prefetches = _prefetches(scene)
    for number in range(MOST_UNDER_WAY):
        assert prefetches.begin(_chunks([number]))[1].coming == 1
    assert prefetches.begin(_chunks([50]))[1] == Fetched(0, 0, 1)
    scene.arrive(0)
    prefetches.look("kvtier-prefetch-1")
    assert prefetches.begin(_chunks([50]))[1].coming == 1
