"""A request that loads what is still being read for it: found, lent, lost, given up."""

import pytest
from tests.engine.connector.disk.promotions_scene import ABSENT, BAD, ENDS, PENDING, READY, Scene, key_of

from kvtier_common.tier import Tier

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


def test_a_request_that_is_ahead_finds_what_is_read_for_it_in_parts() -> None:
    scene = Scene(8, on_disk=[2, 3, 5])
    scene.put_in_memory(1)
    scene.look_up("a", 1, 2, 3, 4)
    assert scene.begin(ENDS) == [2, 3]
    assert scene.look_ahead("a", 1, 2, 3, 4) == [READY, READY, READY, ABSENT]
    assert scene.look_up("a", 1, 2, 3) == [READY, PENDING, PENDING]
    assert scene.look_ahead("b", 1, 2, 3) == [READY, PENDING, PENDING], "what is read for others may go"
    scene.look_up("c", 5)
    assert scene.begin() == [5]
    assert scene.look_ahead("c", 5) == [PENDING], "nobody is told of its parts"


def test_blocks_that_a_load_is_ahead_of_stay_until_it_has_ended() -> None:
    scene = Scene(3, on_disk=[2, 3])
    scene.put_in_memory(1)
    scene.look_up("a", 1, 2, 3)
    scene.begin(ENDS)
    assert scene.lend("a", 1, 2, 3) == [2, 3]
    assert scene.arrive(2, 3) == [2, 3]
    assert scene.memory.reservable == 0
    scene.end_load("a", 1, 2, 3)
    assert scene.memory.reservable == 3
    assert scene.look_up("b", 1, 2, 3) == [READY, READY, READY]
    scene.finish("a", "b")
    scene.assert_nothing_is_kept()


@pytest.mark.parametrize("ended", [True, False])
def test_a_block_that_a_load_was_ahead_of_and_that_is_lost_is_nowhere(*, ended: bool) -> None:
    scene = Scene(4, on_disk=[2, 3])
    scene.look_up("a", 2, 3)
    scene.begin(ENDS)
    assert scene.lend("a", 2, 3) == [2, 3]
    scene.arrive(2)
    scene.fail(3, ended=ended)
    scene.memory.invalidate([key_of(2), key_of(3)])  # as the manager does of a load that failed
    scene.end_load("a", 2, 3)
    assert scene.look_up("b", 2) == [PENDING]  # still on disk
    assert scene.look_up("c", 3)[0] in {ABSENT, BAD}
    if not ended:
        scene.end_late(3)
    scene.finish("a", "b", "c")
    scene.assert_nothing_is_kept()


def test_blocks_that_the_disk_tells_of_after_their_load_are_kept_for_nobody() -> None:
    """The worker has checked them: the load does not wait until the disk's thread has heard of that."""
    scene = Scene(4, on_disk=[2, 3])
    scene.look_up("a", 2, 3)
    scene.begin(ENDS)
    scene.lend("a", 2, 3)
    scene.end_load("a", 2, 3)
    assert scene.look_up("b", 2) == [PENDING]
    assert scene.arrive(2, 3) == [2, 3]
    assert scene.memory.reservable == 4, "the request goes on, but has all that it needs"
    assert scene.promotions.tier_of(key_of(2), "a") is Tier.DISK
    assert scene.look_up("b", 2, 3) == [READY, READY]
    scene.finish("a", "b")
    scene.assert_nothing_is_kept()


@pytest.mark.parametrize("arrives", ["before", "after"])
def test_a_request_that_ends_under_its_load_keeps_nothing(arrives: str) -> None:
    scene = Scene(4, on_disk=[2, 3])
    scene.look_up("a", 2, 3)
    scene.begin(ENDS)
    scene.lend("a", 2, 3)
    if arrives == "before":
        scene.arrive(2, 3)
    scene.finish("a")
    if arrives == "after":
        scene.arrive(2, 3)
    scene.end_load("a", 2, 3)
    scene.assert_nothing_is_kept()


def test_a_reset_forgets_what_was_lent() -> None:
    scene = Scene(4, on_disk=[2])
    scene.look_up("a", 2)
    scene.begin(ENDS)
    scene.lend("a", 2)
    scene.promotions.forget_memory()
    assert scene.promotions.complete_load("a") == set()
