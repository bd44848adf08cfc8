"""Whatever is done to the index, it answers as plain Python would."""

from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule
from numpy.typing import NDArray
from tests.unit.scorer.index.model import PodModel
from tests.unit.scorer.index.prompts import prompt

from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.index.layout import PAGE_BYTES, PAGE_SLOTS
from kvtier_scorer.index.prefix_index import PrefixIndex

# about as many blocks as a prompt or two have, and around one page and several
SMALL = st.sampled_from([9, 4, 6, 2, 13, 1, 0])
LARGE = st.sampled_from([PAGE_SLOTS, 100, PAGE_SLOTS - 1, PAGE_SLOTS + 1, 3 * PAGE_SLOTS])
SIZES = SMALL | SMALL | LARGE
LENGTHS = st.sampled_from([3, 1, 4, 2, 0, 60, 5000])
TIERS = st.sampled_from(OF_A_POD)
ENTRIES = st.fixed_dictionaries({Tier.GPU: SIZES, Tier.CPU: SIZES}, optional={Tier.DISK: SIZES})
NO_PODS = [-1, 1_000_000]
PROMPTS = st.builds(prompt, st.tuples(st.integers(0, 1), LENGTHS), st.tuples(st.integers(2, 3), LENGTHS))
SHARES = st.sampled_from([0, 0.25, 0.5, 0.75, 1])
PARTS = st.tuples(SHARES, SHARES).map(sorted)


class IndexMachine(RuleBasedStateMachine):
    numbers: Bundle[int] = Bundle("numbers")

    def __init__(self) -> None:
        super().__init__()
        self.index = PrefixIndex(1 << 28)
        self.pods: dict[int, PodModel] = {}
        self.most_pods = 0
        self.precise_at_first = False

    # precise from the start, there are often holes, and blocks behind them
    @initialize(precise=st.booleans())
    def start(self, *, precise: bool) -> None:
        self.precise_at_first = precise

    @rule(target=numbers, entries=ENTRIES)
    def add_pod(self, entries: dict[Tier, int]) -> int:
        number = self.index.add_pod(entries)
        assert number not in self.pods
        self.pods[number] = PodModel(entries)
        self.most_pods = max(self.most_pods, len(self.pods))
        # numbers are used again
        assert number < self.most_pods
        if self.precise_at_first:
            self.set_precise(number, precise=True)
        return number

    @rule(number=consumes(numbers))
    def remove_pod(self, number: int) -> None:
        self.index.remove_pod(number)
        del self.pods[number]

    @rule(number=numbers, tier=TIERS, entries=SIZES)
    def resize(self, number: int, tier: Tier, entries: int) -> None:
        self.index.resize(number, tier, entries)
        self.pods[number].resize(tier, entries)

    # several, because order of use shows only where some of them come again and others leave
    @rule(number=numbers, prompts=st.lists(PROMPTS, min_size=1, max_size=6))
    def sent(self, number: int, prompts: list[NDArray[np.uint64]]) -> None:
        for hashes in prompts:
            self.index.assume_stored(number, hashes)
            self.pods[number].sent(hashes.tolist())
        for hashes in prompts:
            self.match(hashes)

    @rule(number=numbers, precise=st.booleans())
    def set_precise(self, number: int, *, precise: bool) -> None:
        self.index.set_precise(number, precise=precise)
        self.pods[number].set_precise(precise=precise)

    @rule(number=numbers, tier=TIERS, hashes=PROMPTS, part=PARTS)
    def store(self, number: int, tier: Tier, hashes: NDArray[np.uint64], part: list[float]) -> None:
        if self.pods[number].precise:
            start, stop = (round(len(hashes) * share) for share in part)
            parent = int(hashes[start - 1]) if start else None
            self.index.store(number, tier, hashes[start:stop], parent)
            self.pods[number].tiers[tier].blocks |= dict.fromkeys(hashes[start:stop].tolist())
            self.match(hashes)

    @rule(number=numbers, tier=TIERS, hashes=PROMPTS, part=PARTS, step=st.sampled_from([1, 1, -1, 2, 7]))
    def remove(
        self, number: int, tier: Tier, hashes: NDArray[np.uint64], part: list[float], step: int
    ) -> None:
        if self.pods[number].precise:
            start, stop = (round(len(hashes) * share) for share in part)
            gone = hashes[start:stop][::step]
            self.index.remove(number, tier, gone)
            for block in gone.tolist():
                self.pods[number].tiers[tier].blocks.pop(block, None)
            self.match(hashes)

    @rule(number=numbers, tier=TIERS)
    def clear(self, number: int, tier: Tier) -> None:
        if self.pods[number].precise:
            self.index.clear(number, tier)
            self.pods[number].tiers[tier].blocks.clear()

    @rule(hashes=PROMPTS)
    def match(self, hashes: NDArray[np.uint64]) -> None:
        numbers = [*self.pods, *NO_PODS]
        lengths = self.index.match(hashes, np.array(numbers, np.int32))
        assert lengths.shape == (len(OF_A_POD), len(numbers))
        blocks = hashes.tolist()
        for place, number in enumerate(self.pods):
            for tier, model in self.pods[number].tiers.items():
                assert lengths[tier, place] == model.match(blocks), (number, tier)
        assert not lengths[:, len(self.pods) :].any()

    @invariant()
    def sizes(self) -> None:
        for number, pod in self.pods.items():
            for tier, model in pod.tiers.items():
                assert self.index.used_blocks(number, tier) == len(model.blocks), (number, tier)
                assert self.index.capacity(number, tier) == model.capacity
                assert self.index.dropped_blocks(number, tier) == 0

    def teardown(self) -> None:
        for number in self.pods:
            self.index.remove_pod(number)
        assert self.index.nbytes < PAGE_BYTES
        super().teardown()


TestIndex: Any = IndexMachine.TestCase
TestIndex.settings = settings(max_examples=50, stateful_step_count=40)
