"""Messages in, index out: order, gaps, replays, restarts, and what cannot be trusted."""

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.unit.scorer.picker.engines.kv_events.wire import CLEARED, batch, name, removed_event, stored_event

from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.index.chain import prefix_seed, token_hashes
from kvtier_scorer.index.prefix_index import PrefixIndex
from kvtier_scorer.picker.engines.kv_events import chains as chains_module
from kvtier_scorer.picker.engines.kv_events.chains import PodChains, Run
from kvtier_scorer.picker.engines.kv_events.limits import HeldBlocks
from kvtier_scorer.picker.engines.kv_events.payload import PART_BLOCKS
from kvtier_scorer.picker.engines.kv_events.pod_view import PodView

TOKENS = np.arange(64, dtype=np.uint32)
HASHES = token_hashes(TOKENS, prefix_seed("m", "", tokens=True), 16, 4)
FOUR = [name(number) for number in range(4)]
STORED = batch(stored_event(FOUR, TOKENS.tolist()))
REMOVED = batch(removed_event(FOUR[2:]))


class Pod:
    """A pod in a real index, and the view of its events."""

    def __init__(self, blocks: int = 100, room: HeldBlocks | None = None) -> None:
        self.index = PrefixIndex(1 << 24)
        self.number = self.index.add_pod(dict.fromkeys(OF_A_POD, blocks))
        self.view = PodView(self.number, "10.0.0.7:8000", self.index, PodChains(16, "m"), room)

    def apply_live(self, number: int, payload: bytes) -> None:
        """A whole message."""
        list(self.view.apply_live(number, payload))

    def apply_replayed(self, number: int, payload: bytes) -> None:
        """A whole message of a replay."""
        list(self.view.apply_replayed(number, payload))

    @property
    def held(self) -> list[int]:
        """Blocks of the prompt that each tier is believed to hold."""
        lengths: list[int] = self.index.match(HASHES, np.array([self.number], np.int32))[:, 0].tolist()
        return lengths


@pytest.fixture
def pod() -> Pod:
    return Pod()


def test_a_pod_is_approximate_until_its_events_tell_what_it_holds(pod: Pod) -> None:
    pod.index.assume_stored(pod.number, HASHES[:1])
    assert (pod.view.precise, pod.held) == (False, [1, 1, 1])
    pod.apply_live(0, STORED)
    assert (pod.view.precise, pod.held) == (True, [4, 0, 0])
    pod.index.assume_stored(pod.number, HASHES)
    assert pod.held == [4, 0, 0], "what is sent there is not guessed at any more"
    pod.apply_live(1, REMOVED)
    assert pod.held == [2, 0, 0]


@pytest.mark.parametrize(("medium", "held"), [("CPU", [2, 4, 0]), ("STORAGE", [2, 0, 4]), (None, [2, 0, 0])])
def test_mediums_are_tiers(pod: Pod, medium: str | None, held: list[int]) -> None:
    pod.apply_live(0, STORED)
    pod.apply_live(1, batch(stored_event(FOUR, (), medium=medium)))
    pod.apply_live(2, REMOVED)
    if medium is None:
        pod.apply_live(3, REMOVED)
    assert pod.held == held


def test_a_gap_makes_it_approximate_until_a_reset(pod: Pod, caplog: pytest.LogCaptureFixture) -> None:
    pod.apply_live(0, STORED)
    pod.apply_live(2, STORED)
    assert (pod.view.precise, pod.held) == (False, [0, 0, 0])
    assert "KV events 1 to 1 were missed" in caplog.text
    pod.index.assume_stored(pod.number, HASHES)
    assert pod.held == [4, 4, 4]
    pod.apply_live(3, batch(CLEARED))
    assert (pod.view.precise, pod.held) == (True, [0, 0, 0])
    pod.apply_live(4, STORED)
    assert pod.held == [4, 0, 0]


def test_a_replay_closes_a_gap(pod: Pod) -> None:
    pod.apply_live(0, STORED)
    assert pod.view.misses(3)
    assert pod.view.expected == 1
    for number, payload in enumerate([STORED, REMOVED, batch(), batch(), batch()]):
        pod.apply_replayed(number, payload)
    pod.apply_live(3, batch(CLEARED))
    assert not pod.view.misses(4)
    pod.apply_live(4, batch(CLEARED))
    assert (pod.view.precise, pod.held) == (True, [2, 0, 0]), "what a replay brought is not taken twice"
    pod.apply_live(5, batch(CLEARED))
    assert pod.held == [0, 0, 0]


def test_a_replay_that_begins_too_late_does_not(pod: Pod) -> None:
    pod.apply_live(0, STORED)
    assert pod.view.misses(9)
    pod.apply_replayed(7, REMOVED)
    pod.apply_replayed(8, batch())
    pod.apply_live(9, batch())
    assert not pod.view.precise


def test_a_publisher_that_begins_anew_holds_what_it_says_since(pod: Pod) -> None:
    pod.apply_live(0, STORED)
    pod.apply_live(1, batch())
    pod.apply_live(0, batch())
    assert (pod.view.precise, pod.held) == (True, [0, 0, 0])
    pod.apply_live(1, STORED)
    assert pod.held == [4, 0, 0]


def test_a_new_publisher_whose_beginning_was_missed_is_approximate(pod: Pod) -> None:
    pod.apply_live(0, STORED)
    pod.apply_live(5, batch())
    pod.view.notice_restart(3)
    assert pod.view.misses(3)
    assert pod.view.expected == 0, "all of the new one's events are asked for"
    pod.apply_live(3, STORED)
    assert not pod.view.precise


def test_after_a_lost_connection_the_next_number_in_line_is_not_trusted(pod: Pod) -> None:
    pod.apply_live(0, STORED)
    pod.view.restart("the connection was lost")
    assert pod.held == [0, 0, 0]
    assert pod.view.misses(1)
    pod.apply_live(1, STORED)
    assert not pod.view.precise


def test_a_pod_is_known_again_once_its_tiers_were_filled_anew() -> None:
    pod = Pod(blocks=8)
    pod.apply_live(5, STORED)
    assert not pod.view.precise
    more = [name(number) for number in range(4, 8)]
    pod.apply_live(6, batch(stored_event(more, range(64, 128), FOUR[3])))
    assert (pod.view.precise, pod.held) == (True, [4, 0, 0])


@pytest.mark.parametrize(
    ("payload", "line"),
    [
        (b"\xc1", "not a batch"),
        (batch({"type": "BlockRemoved"}), "malformed"),
        (batch(stored_event(FOUR, range(20))), "not a multiple of 16"),
        (batch(stored_event(FOUR[:1], [7] * (1 << 17))), "more than 65536"),
    ],
)
def test_what_cannot_be_understood_makes_it_approximate_with_one_line(
    pod: Pod, payload: bytes, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    pod.apply_live(0, STORED)
    for number in range(1, 50):
        pod.apply_live(number, payload)
    assert (pod.view.precise, pod.held) == (False, [0, 0, 0])
    assert sum(line in record.getMessage() for record in caplog.records) <= 2


def test_a_pod_is_known_again_after_a_reset_that_follows_a_malformed_event(pod: Pod) -> None:
    pod.apply_live(0, b"\xc1")
    pod.apply_live(1, STORED)
    assert not pod.view.precise
    pod.apply_live(2, batch(CLEARED))
    assert pod.view.precise


def test_events_that_do_not_say_what_is_stored_are_told_of_with_what_to_set(
    pod: Pod, caplog: pytest.LogCaptureFixture
) -> None:
    pod.apply_live(0, batch(stored_event(FOUR, (), medium="CPU"), stored_event(FOUR, (), medium="CPU")))
    assert caplog.text.count("self_describing_kv_events") == 1


def test_a_pod_that_announces_more_than_it_can_hold_is_not_believed(pod: Pod) -> None:
    for number in range(70):
        names = [name(number * 1000 + each) for each in range(1000)]
        pod.apply_live(number, batch(stored_event(names, [number] * 16_000)))
    assert not pod.view.precise


def test_a_pod_that_changes_its_mind_writes_no_log(pod: Pod, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for number in range(0, 1000, 2):
        pod.apply_live(number, batch(CLEARED))
        pod.apply_live(number + 1, b"\xc1")
    assert len(caplog.records) <= 4


MANY = 8 * PART_BLOCKS
LONG = 16 * MANY
"""Tokens of that many blocks."""


@pytest.mark.parametrize(
    ("payload", "blocks"),
    [
        (batch(stored_event(range(MANY), [7] * LONG)), MANY),
        (batch(stored_event(range(16), [7] * LONG)), MANY),
        (batch(*[stored_event([number], [7] * (LONG // 8)) for number in range(8)]), MANY),
        (batch(*[CLEARED] * MANY), MANY),
    ],
    ids=["blocks", "large blocks", "one large block an event", "resets"],
)
def test_no_step_learns_much_whatever_the_blocks_are(
    pod: Pod, payload: bytes, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[int] = []

    def counted(tier: Tier, hashes: NDArray[np.uint64], parent: int | None) -> Run:
        learned.append(len(hashes))
        return Run(tier, hashes, parent)

    monkeypatch.setattr(chains_module, "Run", counted)
    told = 0
    for done in pod.view.apply_live(0, payload):
        told += done
        assert sum(learned) <= 2 * PART_BLOCKS
        learned.clear()
    assert pod.view.precise
    assert told >= blocks, "what a pod may send is counted by what it takes to learn"


MESSAGES = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.sampled_from(
            [STORED, REMOVED, batch(), batch(CLEARED), b"\xc1", batch(stored_event(FOUR, (), medium="CPU"))]
        ),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(MESSAGES)
def test_whatever_comes_the_pod_is_precise_or_holds_nothing_of_the_events(
    messages: list[tuple[int, bytes]],
) -> None:
    logging.disable()
    try:
        pod = Pod()
        for number, payload in messages:
            pod.apply_live(number, payload)
            assert pod.view.precise or pod.held == [0, 0, 0]
    finally:
        logging.disable(logging.NOTSET)


def test_where_all_pods_hold_too_much_the_one_with_the_most_lets_go(caplog: pytest.LogCaptureFixture) -> None:
    room = HeldBlocks(5)
    large, small = Pod(room=room), Pod(room=room)
    large.apply_live(0, STORED)
    small.apply_live(0, batch(stored_event(FOUR[:1], TOKENS.tolist()[:16])))
    assert (large.view.precise, small.view.precise) == (True, True)
    small.apply_live(1, batch(stored_event(FOUR[1:2], TOKENS.tolist()[16:32], parent=FOUR[0])))
    assert (large.view.precise, large.view.given_up, large.held) == (False, True, [0, 0, 0])
    assert (small.view.precise, small.held) == (True, [2, 0, 0])
    assert caplog.text.count("more blocks than the picker has memory for") == 1
    large.view.restart("again")
    large.apply_live(0, batch(stored_event(FOUR[:3], TOKENS.tolist()[:48])))
    small.view.end()
    large.apply_live(1, batch(stored_event(FOUR[3:], TOKENS.tolist()[48:], parent=FOUR[2])))
    assert large.held == [4, 0, 0]


def test_the_one_that_passes_the_bound_may_be_the_one_that_loses() -> None:
    pod = Pod(room=HeldBlocks(3))
    pod.apply_live(0, STORED)
    assert (pod.view.precise, pod.view.given_up, pod.held) == (False, True, [0, 0, 0])
