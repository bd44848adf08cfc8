"""A pod whose KV events are followed into an index of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import numpy as np
from tests.unit.scorer.picker.engines.kv_events.wire import batch, name, stored_event

from kvtier_common.tier import OF_A_POD
from kvtier_scorer.index.chain import prefix_seed, token_hashes
from kvtier_scorer.index.prefix_index import PrefixIndex
from kvtier_scorer.picker.engines.kv_events.limits import ByteRate
from kvtier_scorer.picker.engines.kv_events.subscriber import EventPorts, Subscriber

IP: Final = "127.0.0.1"
POD: Final = f"{IP}:8000"
TOKENS: Final = np.arange(64, dtype=np.uint32)
HASHES: Final = token_hashes(TOKENS, prefix_seed("m", "", tokens=True), 16, 100)
FOUR: Final = [name(number) for number in range(4)]
STORED: Final = batch(stored_event(FOUR, range(64)))
"""The prompt's four blocks, on the device."""


class FollowedPod:
    """One pod in an index, followed by a subscriber."""

    def __init__(self, ports: EventPorts, rate: ByteRate) -> None:
        self.index = PrefixIndex()
        self.number = self.index.add_pod(dict.fromkeys(OF_A_POD, 1000))
        self.subscriber = Subscriber(self.index, 16, ports, rate)

    @property
    def held(self) -> list[int]:
        """Blocks of the prompt that each tier is believed to hold."""
        lengths: list[int] = self.index.match(HASHES, np.array([self.number], np.int32))[:, 0].tolist()
        return lengths

    @property
    def precise(self) -> bool:
        """Whether it is known, not guessed, what the pod holds."""
        return POD in self.subscriber.precise


@asynccontextmanager
async def followed_pod(
    ports: EventPorts, rank: int = 0, rate: ByteRate | None = None
) -> AsyncIterator[FollowedPod]:
    """Follows a pod on those ports for as long as the context lasts."""
    pod = FollowedPod(ports, rate or ByteRate())
    async with pod.subscriber:
        pod.subscriber.follow(POD, pod.number, rank, "m")
        yield pod
