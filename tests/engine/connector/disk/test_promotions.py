"""What requests ask of the disk: shared, refused, given up, lost."""

import pytest
from tests.engine.connector.disk.promotions_scene import (
    ABSENT,
    BAD,
    KEY_BYTES,
    PENDING,
    READY,
    FakeDecision,
    FakeDisk,
    Scene,
    key_of,
    numbers,
)

from kvtier_common.tier import Tier
from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.core.index.hints import BlockHint
from kvtier_connector.core.index.index import BlockIndex
from kvtier_connector.vllm.behind.promotions import Promotions, Source

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


def test_a_request_waits_until_its_blocks_are_in_memory() -> None:
    scene = Scene(8, on_disk=[2, 3])
    scene.put_in_memory(1)
    assert scene.look_up("a", 1, 2, 3, 4) == [READY, PENDING, PENDING, ABSENT]
    assert scene.begin() == [2, 3]
    assert not scene.promotions.is_complete
    assert scene.look_up("a", 1, 2, 3, 4) == [READY, PENDING, PENDING, ABSENT]
    assert scene.begin() == []
    assert scene.arrive(3) == [3]
    assert not scene.promotions.is_complete
    assert scene.arrive(2) == [2]
    assert scene.promotions.is_complete
    assert scene.look_up("a", 1, 2, 3, 4) == [READY, READY, READY, ABSENT]
    assert [scene.promotions.tier_of(key_of(n), "a") for n in (1, 2, 3)] == [None, Tier.DISK, Tier.DISK]
    assert scene.memory.reservable == 5  # nobody evicts them before the request has loaded them
    scene.load("a", 1, 2, 3)
    assert scene.memory.reservable == 8
    scene.finish("a")
    scene.assert_nothing_is_kept()


@pytest.mark.parametrize(
    ("hint", "may_have_strays"), [(None, True), (BlockHint(until_s=9), True), (BlockHint(tenant="a"), False)]
)
def test_what_is_read_for_nobody_may_be_anybodys(hint: BlockHint | None, may_have_strays: bool) -> None:
    scene = Scene(4, on_disk=[1], hints={} if hint is None else {"request": hint})
    scene.look_up("request", 1)
    assert not scene.memory.may_have_strays
    assert scene.begin() == [1]
    assert scene.memory.may_have_strays is may_have_strays


def test_what_is_kept_for_a_request_is_not_evicted() -> None:
    scene = Scene(4, on_disk=[2])
    scene.put_in_memory(1, 7, 8)
    scene.look_up("a", 1, 2)
    scene.begin()
    scene.arrive(2)
    evicted = scene.memory.reserve([key_of(n) for n in range(20, 24)]).evicted
    assert sorted(numbers(evicted)) == [7, 8]


def test_requests_that_share_blocks_read_them_once() -> None:
    scene = Scene(8, on_disk=[1, 2, 3, 4])
    scene.look_up("a", 1, 2, 3)
    scene.look_up("b", 1, 2, 4)
    assert scene.begin() == [1, 2, 3, 4]
    assert scene.look_up("b", 1, 2, 4) == [PENDING] * 3
    scene.arrive(1, 2, 3, 4)
    assert scene.look_up("b", 1, 2, 4) == scene.look_up("a", 1, 2, 3) == [READY] * 3
    scene.begin()
    scene.load("a", 1, 2, 3)
    scene.finish("a")
    scene.load("b", 1, 2, 4)
    scene.finish("b")
    scene.assert_nothing_is_kept()


def test_a_shared_block_that_has_left_again_is_read_for_the_other_too() -> None:
    scene = Scene(4, on_disk=[1, 2])
    scene.look_up("a", 1)
    scene.look_up("b", 1, 2)
    scene.begin()
    scene.arrive(1, 2)
    scene.load("a", 1)
    scene.finish("a")
    gone = scene.memory.reserve([key_of(n) for n in range(20, 23)])
    assert numbers(gone.evicted) == [1]
    scene.memory.invalidate(gone.keys)
    scene.memory.commit(gone.keys)
    assert scene.look_up("b", 1, 2) == [PENDING, READY]
    assert scene.begin() == [1]


def test_a_prompt_larger_than_memory_gets_what_has_room_and_computes_the_rest() -> None:
    scene = Scene(3, on_disk=range(6))
    assert scene.look_up("a", *range(6)) == [PENDING] * 6
    assert scene.begin() == [0, 1, 2]
    scene.arrive(0, 1, 2)
    assert scene.look_up("a", *range(6)) == [READY, READY, READY, ABSENT]
    scene.load("a", 0, 1, 2)
    assert scene.look_up("b", 3) == [PENDING]  # another request may well have it
    scene.finish("a", "b")
    scene.assert_nothing_is_kept()


def test_two_prompts_larger_than_memory_come_one_after_the_other() -> None:
    scene = Scene(3, on_disk=range(20))
    scene.look_up("a", *range(5))
    scene.look_up("b", *range(10, 15))
    assert scene.begin() == [0, 1, 2]
    for _ in range(3):
        assert scene.look_up("b", *range(10, 15)) == [PENDING] * 5
        assert scene.begin() == []  # and it holds nothing meanwhile
    scene.arrive(0, 1, 2)
    scene.look_up("b", *range(10, 15))
    assert scene.begin() == []
    scene.load("a", 0, 1, 2)
    scene.look_up("b", *range(10, 15))
    assert scene.begin() == [10, 11, 12]
    scene.arrive(10, 11, 12)
    assert scene.look_up("b", *range(10, 15)) == [READY, READY, READY, ABSENT]
    scene.finish("a", "b")
    scene.assert_nothing_is_kept()


def test_small_requests_do_not_starve_a_large_one() -> None:
    scene = Scene(4, on_disk=range(100))
    scene.look_up("first", 50)
    scene.begin()
    scene.arrive(50)
    for turn in range(5):
        scene.look_up("large", 0, 1, 2, 3)  # the older one is always looked up first
        scene.look_up(f"small {turn}", 60 + turn)
        assert scene.begin() == []
    scene.load("first", 50)
    scene.look_up("large", 0, 1, 2, 3)
    scene.look_up("small 9", 69)
    assert scene.begin() == [0, 1, 2, 3]


def test_an_abort_while_blocks_are_read_leaves_them_to_others() -> None:
    scene = Scene(4, on_disk=[1, 2])
    scene.look_up("a", 1, 2)
    scene.begin()
    scene.finish("a")
    assert scene.promotions.is_complete
    assert scene.look_up("b", 1, 2) == [PENDING, PENDING]
    assert scene.begin() == []
    assert scene.arrive(1, 2) == [1, 2]
    assert scene.look_up("b", 1, 2) == [READY, READY]
    scene.finish("b")
    scene.assert_nothing_is_kept()


def test_an_abort_before_anything_has_begun() -> None:
    scene = Scene(4, on_disk=[1])
    scene.look_up("a", 1)
    scene.finish("a", "never seen")
    assert scene.begin() == []
    scene.assert_nothing_is_kept()


@pytest.mark.parametrize("ended", [True, False])
def test_a_block_that_is_lost_is_a_miss(*, ended: bool) -> None:
    scene = Scene(4, on_disk=[1, 2, 3])
    scene.look_up("a", 1, 2, 3)
    scene.begin()
    scene.arrive(1)
    assert scene.fail(2, ended=ended) == []
    assert not scene.promotions.is_complete
    assert scene.arrive(3) == [3]
    assert scene.promotions.is_complete  # although the disk still has the memory of one
    assert scene.look_up("a", 1, 2, 3) == [READY, ABSENT if ended else BAD]
    if not ended:
        assert scene.end_late(2) == []
        assert scene.look_up("a", 1, 2, 3) == [READY, ABSENT]
    scene.finish("a")
    scene.assert_nothing_is_kept()


def test_what_is_lost_one_after_the_other_is_all_kept_when_it_is_computed() -> None:
    scene = Scene(4, on_disk=[1, 2, 3])
    scene.look_up("a", 1, 2, 3)
    scene.begin()
    scene.arrive(1)
    scene.fail(2)
    # to go ahead here would be to compute 3 while memory believes that it comes
    assert scene.look_up("a", 1, 2, 3) == [READY, PENDING, PENDING]
    assert scene.begin() == []
    scene.fail(3)
    assert scene.look_up("a", 1, 2, 3) == [READY, ABSENT]
    scene.put_in_memory(2, 3)
    scene.finish("a")
    scene.assert_nothing_is_kept()


def test_all_lost_at_once_keeps_nobody_waiting() -> None:
    scene = Scene(4, on_disk=[1, 2])
    scene.look_up("a", 1, 2)
    scene.begin()
    scene.fail(1, 2)
    assert scene.promotions.is_complete
    assert scene.look_up("a", 1, 2) == [ABSENT]
    scene.finish("a")
    scene.assert_nothing_is_kept()


def test_a_disk_that_goes_between_lookup_and_order_is_asked_for_nothing() -> None:
    scene = Scene(4, on_disk=[1, 2])
    scene.look_up("a", 1, 2)
    scene.disk.held.discard(key_of(1))  # evicted there, or the disk has failed
    assert scene.begin() == [2]
    scene.look_up("b", 2)
    scene.disk.held.clear()
    assert scene.begin() == []
    assert scene.look_up("a", 1, 2) == [ABSENT]
    scene.arrive(2)
    scene.finish("a", "b")
    scene.assert_nothing_is_kept()


def test_what_left_memory_between_lookup_and_order_is_no_error() -> None:
    scene = Scene(4, on_disk=[9, 10])
    scene.put_in_memory(1, 2)
    scene.look_up("a", 1, 2, 9)
    scene.memory.invalidate([key_of(2)])
    assert scene.begin() == [9]
    assert scene.look_up("a", 1, 2, 9) == [READY, ABSENT]
    scene.arrive(9)
    scene.finish("a")
    scene.assert_nothing_is_kept()


@pytest.mark.parametrize("found", [1, 2, 3])
def test_one_request_may_evict_what_the_next_found_in_memory(found: int) -> None:
    scene = Scene(5, on_disk=[10, 11, 12, 13])
    scene.put_in_memory(1, 2, 3)
    scene.look_up("a", 10, 11, 12)
    assert scene.look_up("b", found, 13) == [READY, PENDING]
    assert scene.begin() == [10, 11, 12, 13]  # one of the three had to leave for the first of them
    scene.arrive(10, 11, 12, 13)
    scene.finish("a", "b")
    scene.assert_nothing_is_kept()


def test_a_block_that_came_into_memory_by_itself_is_not_read() -> None:
    scene = Scene(4, on_disk=[1, 2])
    scene.look_up("a", 1, 2)
    scene.put_in_memory(1)  # another request computed it
    assert scene.begin() == [2]
    assert scene.look_up("a", 1, 2) == [READY, PENDING]
    scene.arrive(2)
    scene.finish("a")
    scene.assert_nothing_is_kept()


def test_a_reset_forgets_who_waits_for_what() -> None:
    scene = Scene(4, on_disk=[1, 2, 3])
    scene.look_up("a", 1, 2)
    scene.begin()
    scene.arrive(1)
    scene.look_up("b", 3)
    scene.promotions.forget_memory()
    scene.memory.clear()
    assert scene.begin() == []
    scene.disk.slots.clear()  # their ends are reported as orphans
    assert scene.look_up("a", 1, 2) == [PENDING, PENDING]
    assert scene.begin() == [1, 2]
    scene.arrive(1, 2)
    scene.finish("a", "b")
    scene.assert_nothing_is_kept()


def test_what_does_not_pay_is_computed() -> None:
    scene = Scene(4, on_disk=[1, 2, 3])
    scene.decision.never = True
    assert scene.look_up("a", 1) == [ABSENT]  # without another round through the engine
    assert scene.begin() == []
    scene.decision.never, scene.decision.too_few = False, 3
    assert scene.look_up("b", 1, 2) == [PENDING, PENDING]
    assert scene.begin() == []
    scene.decision.too_few = 0
    assert scene.look_up("b", 1, 2) == [ABSENT]  # decided once for a request
    assert scene.look_up("c", 1, 2, 3) == [PENDING, PENDING, PENDING]
    assert scene.begin() == [1, 2, 3]


def test_a_block_that_two_tiers_have_is_read_from_the_one_that_is_faster_by_now() -> None:
    tiers = [FakeDisk([1, 2, 3]), FakeDisk([1, 2])]
    sources = [Source(tier, FakeDecision()) for tier in tiers]  # type: ignore[arg-type] # stand-ins
    promotions = Promotions(BlockIndex(8, KEY_BYTES), sources)

    def read(number: int) -> list[int]:
        promotions.lookup(key_of(number), "a", number)
        promotions.begin()
        return [len(tier.asked) for tier in tiers]

    tiers[0].break_even.read.add(1 << 20, 1.0)
    tiers[1].break_even.read.add(1 << 30, 1.0)
    promotions.apply(Progress(), Tier.DISK)
    assert read(1) == [0, 1]
    assert read(3) == [1, 1], "the slower one alone has it"
    tiers[1].break_even.read.add(1 << 20, 1e4)
    promotions.apply(Progress(), Tier.DISK)
    assert read(2) == [2, 1]


def test_a_read_that_memory_forgot_meanwhile_is_lent_to_nobody() -> None:
    scene = Scene(4, on_disk=[1])
    assert scene.look_up("a", 1) == [PENDING]
    scene.begin()
    scene.memory.invalidate([key_of(1)])  # as a clear of memory alone does
    assert scene.arrive(1) == []
    scene.put_in_memory(9)  # where it would have been
    assert scene.look_up("b", 1) == [PENDING]
    scene.begin()
    assert scene.arrive(1) == [1]
    assert scene.look_up("a", 1) == [READY]
    assert not scene.promotions.lend([key_of(1)], "a")
