"""A stand-in pod that publishes KV events, and what follows it."""

from collections.abc import AsyncIterator

import pytest
from tests.cluster.harness.programs.ports import free_ports
from tests.picker.data_layer.kv_events.followed_pod import IP, FollowedPod, followed_pod
from tests.picker.data_layer.kv_events.publisher import Publisher, running_publisher

from kvtier_scorer.picker.engines.kv_events.subscriber import EventPorts


@pytest.fixture
def ports() -> EventPorts:
    port, replay_port = free_ports(2)
    return EventPorts(port, replay_port)


@pytest.fixture
async def publisher(ports: EventPorts) -> AsyncIterator[Publisher]:
    """What a pod's engine publishes on these ports."""
    async with running_publisher(IP, ports.port, ports.replay_port) as publisher:
        yield publisher


@pytest.fixture
async def followed(ports: EventPorts) -> AsyncIterator[FollowedPod]:
    """The pod whose events come from these ports."""
    async with followed_pod(ports) as followed:
        yield followed
