"""Prompts that come again: their pod keeps them until then, unless it is gone, full or overloaded."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.unit.scorer.scheduling.pool import PREFIX, Pool, address, prompt, request, settings

from kvtier_common.hints import RETAINED_SHARE
from kvtier_common.tier import Tier
from kvtier_scorer.scheduling.kept import KeptPrompts
from kvtier_scorer.scheduling.model import PickRequest

_CPU_BLOCKS = PREFIX.entries[Tier.CPU] or 0


def chain(*blocks: int) -> NDArray[np.uint64]:
    """Hashes that stand for their block and all before it."""
    hashes, before = [], 1
    for block in blocks:
        before = hash((before, block)) & (2**64 - 1)
        hashes.append(before)
    return np.array(hashes, np.uint64)


def asked(*blocks: int, retain_s: float) -> PickRequest:
    return PickRequest(prompt(*blocks), retain_s=retain_s)


def send(pool: Pool, to: int, *blocks: int, retain_s: float = 0.0, now_s: float = 0.0) -> None:
    only = PickRequest(prompt(*blocks), frozenset({address(to)}), retain_s=retain_s)
    pool.scheduler.record_sent(pool.scheduler.pick(only, now_s))


def flood(pool: Pool, pod: int, now_s: float = 0.0) -> None:
    """As many other blocks as make the index forget all that went to the pod before."""
    send(pool, pod, *range(1000, 1000 + _CPU_BLOCKS), now_s=now_s)


def matched(pool: Pool, *blocks: int, now_s: float) -> dict[str, int]:
    """Blocks that each pod's memory is believed to hold."""
    explained = pool.scheduler.explain(request(*blocks), now_s)
    return {pod.name: pod.matched_tokens[Tier.CPU] // PREFIX.block_tokens for pod in explained.pods}


def test_a_prompt_goes_on_where_it_is_kept_though_the_index_has_forgotten_it() -> None:
    pool = Pool(8)
    send(pool, 3, 1, 2, 3, retain_s=60)
    flood(pool, 3)
    assert pool.picks(request(1, 2, 3, 4), now_s=59) == {"pod-3"}
    assert len(pool.picks(request(1, 2, 3, 4), now_s=61)) > 1
    assert len(pool.picks(request(1, 2, 9, 4), now_s=59)) > 1


def test_without_the_hint_it_is_forgotten() -> None:
    pool = Pool(8)
    send(pool, 3, 1, 2, 3)
    flood(pool, 3)
    assert matched(pool, 1, 2, 3, now_s=0)["pod-3"] == 0
    assert len(pool.table.kept) == 0


def test_an_overloaded_pod_loses_what_it_keeps() -> None:
    pool = Pool(8)
    send(pool, 3, 1, 2, 3, retain_s=60)
    for pod in range(8):
        pool.read(pod, queue_depth=pool.settings.affinity.queue_slack if pod == 3 else 0)
    assert "pod-3" not in pool.picks(request(1, 2, 3, 4))


def test_a_pod_that_left_keeps_nothing_nor_does_its_successor() -> None:
    pool = Pool(8)
    send(pool, 3, 1, 2, 3, retain_s=60)
    pool.table.drop(address(3))
    assert len(pool.table.kept) == 0
    assert len(pool.picks(request(1, 2, 3))) > 1
    pool.add("another", address(3))
    assert matched(pool, 1, 2, 3, now_s=1)["another"] == 0


def test_a_pod_that_says_what_it_holds_is_believed() -> None:
    pool = Pool(2)
    send(pool, 1, 1, 2, retain_s=60)
    pool.index.set_precise(1, precise=True)
    assert matched(pool, 1, 2, now_s=1)["pod-1"] == 0
    send(pool, 1, 3, 4, retain_s=60)
    assert len(pool.table.kept) == 1


def test_whoever_answers_in_place_of_the_picked_pod_keeps_it_too() -> None:
    pool = Pool(4)
    pick = pool.scheduler.pick(asked(1, 2, retain_s=60), 0.0)
    other = next(pod for pod in range(4) if address(pod) != pick.address)
    pool.scheduler.record_served_by(pick, address(other))
    flood(pool, other)
    assert matched(pool, 1, 2, now_s=1)[f"pod-{other}"] == 2


def test_an_explanation_tells_what_is_kept() -> None:
    pool = Pool(2)
    send(pool, 1, 1, 2, 3, retain_s=60)
    told = {pod.name: pod.kept_tokens for pod in pool.scheduler.explain(request(1, 2, 3, 4), 1.0).pods}
    assert told == {"pod-0": 0, "pod-1": 3 * PREFIX.block_tokens}


@pytest.mark.parametrize("retained", [RETAINED_SHARE, 0.5])
def test_a_pod_keeps_no_more_than_its_part(retained: float) -> None:
    pool = Pool(1, replace(settings(), retained=retained))
    room = int(retained * _CPU_BLOCKS)
    send(pool, 0, *range(room - 1), retain_s=60)
    send(pool, 0, 500, 501, retain_s=60)
    assert len(pool.table.kept) == 1
    # what goes on with a prompt takes its place, and what has ended takes none
    send(pool, 0, *range(room), retain_s=60)
    assert len(pool.table.kept) == 1
    send(pool, 0, 500, 501, retain_s=60, now_s=120)
    assert matched(pool, 500, 501, now_s=121)["pod-0"] == 2


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),  # pod
            st.lists(st.integers(0, 1), min_size=1, max_size=5),
            st.integers(0, 6),  # retain
        ),
        max_size=25,
    )
)
def test_it_agrees_with_a_list_of_promises(sent: list[tuple[int, list[int], int]]) -> None:
    kept = KeptPrompts()
    promises: list[tuple[int, list[int], float]] = []
    for now_s, (pod, blocks, retain_s) in enumerate(sent):
        if kept.keep(pod, chain(*blocks), now_s + retain_s, 10**6, now_s):
            promises.append((pod, blocks, now_s + retain_s))
        for length in range(1, 6):
            probe = (blocks + [0] * 5)[:length]
            told = kept.lengths(chain(*probe), np.arange(3, dtype=np.int32), now_s)
            expected = [
                max(
                    (
                        len(promised)
                        for holder, promised, until_s in promises
                        if holder == number and until_s >= now_s and probe[: len(promised)] == promised
                    ),
                    default=0,
                )
                for number in (0, 1, 2)
            ]
            got = [0, 0, 0] if told is None else told.tolist()
            # a longer prompt takes its beginning's place: the beginning alone is then not told of
            assert all(one <= two for one, two in zip(got, expected, strict=True))
            if probe == blocks and retain_s:
                assert got[pod] == len(blocks)


@pytest.mark.parametrize("most_blocks", [0, 7, 40])
def test_it_is_bounded(most_blocks: int) -> None:
    kept = KeptPrompts()
    held = sum(kept.keep(0, chain(number, 1, 2), 1e9, most_blocks, 0.0) for number in range(50))
    assert held == len(kept) == most_blocks // 3
    kept.forget(0)
    assert len(kept) == 0
