"""Whose turn it is: a namespace with many resources keeps none with few waiting."""

import asyncio
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kvtier_operator.reconcile.cache.resources import Key
from kvtier_operator.reconcile.loop.dispatch import Dispatcher, ReconcileResult, WorkQueue

_WORKERS = 4


def test_two_thousand_resources_of_one_namespace_do_not_hold_up_another_one() -> None:
    worked: list[Key] = []

    async def run() -> None:
        all_done = asyncio.Event()

        async def work(key: Key) -> ReconcileResult:
            worked.append(key)
            await asyncio.sleep(0)
            if len(worked) == 100:
                dispatcher.add(quiet)
            if len(worked) == 2001:
                all_done.set()
            return ReconcileResult.CHANGED

        async def tell(*_: object) -> None:
            raise AssertionError("a round failed")

        dispatcher = Dispatcher(work, tell, workers=_WORKERS)
        for number in range(2000):
            dispatcher.add(Key("crowd", f"tier-{number}"))
        running = asyncio.create_task(dispatcher.run())
        async with asyncio.timeout(30):
            await all_done.wait()
        running.cancel()

    quiet = Key("quiet", "tier")
    asyncio.run(run())
    assert worked.index(quiet) <= 100 + _WORKERS


def test_a_key_is_taken_when_it_is_due_and_not_before() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", due=5)
    assert queue.take(now=4.9) is None
    assert queue.next_due() == 5
    assert queue.take(now=5) == "a"
    assert queue.take(now=100) is None


def test_a_key_is_in_the_queue_once_with_its_earliest_time() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for due in (5, 3, 9):
        queue.add("a", due)
    assert len(queue) == 1
    assert queue.take(now=3) == "a"
    queue.succeed("a")
    assert queue.take(now=100) is None


def test_what_is_due_for_longest_comes_first() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key, due in (("a", 3), ("b", 1), ("c", 2)):
        queue.add(key, due)
    assert [queue.take(now=9) for _ in range(3)] == ["b", "c", "a"]


def test_groups_take_turns_however_many_keys_one_has() -> None:
    queue: WorkQueue[str] = WorkQueue(lambda key: key[0])
    for number in range(200):
        queue.add(f"a{number:03}", number / 1000)
    assert queue.take(now=1) == "a000"
    queue.add("b0", 0.5)
    queue.add("b1", 0.6)
    queue.add("c0", 0.9)
    assert len(queue) == 202
    taken = [queue.take(now=1) for _ in range(6)]
    assert taken == ["a001", "b0", "c0", "a002", "b1", "a003"]
    queue.succeed("b0")
    queue.add("b0", 1)
    assert [queue.take(now=1) for _ in range(2)] == ["a004", "b0"]


def test_a_key_that_is_due_is_in_the_queue_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", 1)
    queue.add("b", 2)
    assert queue.take(now=3) == "a"
    assert queue.next_due() == 2
    queue.add("b", 0)
    assert len(queue) == 1
    assert queue.take(now=3) == "b"
    assert queue.take(now=3) is None


def test_a_key_is_never_worked_on_twice_at_a_time() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", 0)
    assert queue.take(0) == "a"
    queue.add("a", 1)
    assert queue.take(9) is None
    queue.succeed("a")
    assert queue.take(9) == "a"


def test_failures_in_a_row_wait_longer_and_a_success_forgets_them() -> None:
    queue: WorkQueue[str] = WorkQueue()
    delays = []
    for _ in range(4):
        queue.add("a", 0)
        queue.take(1e9)
        queue.fail("a", now=0)
        delays.append(queue.next_due() or 0.0)
    assert all(later > 1.4 * earlier for earlier, later in pairwise(delays))
    queue.take(1e9)
    queue.succeed("a")
    queue.add("a", 0)
    queue.take(1e9)
    queue.fail("a", now=0)
    assert (queue.next_due() or 1) <= 0.2


def test_a_server_that_asks_for_time_gets_it() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", 0)
    queue.take(0)
    queue.fail("a", now=10, least_s=7)
    assert queue.next_due() == 17


def test_news_of_a_failed_key_need_not_wait() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", 0)
    queue.take(0)
    queue.add("a", 0.01)
    queue.fail("a", now=0, least_s=60)
    assert queue.next_due() == 0.01


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["add", "take", "done", "failed"])), max_size=60
    ),
    st.sampled_from(["one group", "groups"]),
)
def test_no_key_is_ever_lost(steps: list[tuple[str, str]], groups: str) -> None:
    queue: WorkQueue[str] = WorkQueue((lambda key: key < "b") if groups == "groups" else lambda _: None)
    wanted: set[str] = set()
    working: set[str] = set()
    for now, (key, step) in enumerate(steps):
        if step == "add":
            queue.add(key, now)
            wanted.add(key)
        elif step == "take" and (taken := queue.take(now)):
            assert taken not in working
            working.add(taken)
            wanted.discard(taken)
        elif step == "done" and key in working:
            working.discard(key)
            queue.succeed(key)
        elif step == "failed" and key in working:
            working.discard(key)
            queue.fail(key, now)
            wanted.add(key)
    for key in working:
        queue.succeed(key)
    seen = set()
    while last := queue.take(1e9):
        seen.add(last)
    assert seen == wanted


def test_a_key_that_moves_forward_again_and_again_leaves_no_heap_of_entries() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for now in range(2000):
        queue.add("a", due=now + 10_000)
        queue.add("a", due=now)
        assert queue.take(now) == "a"
        queue.succeed("a")
    assert len(queue._heap) < 100
    assert queue.next_due() is None
