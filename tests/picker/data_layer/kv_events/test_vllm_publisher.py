"""The events of vLLM's own publisher, as it writes and numbers and replays them, are understood."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from subprocess import PIPE

import pytest
from tests.cluster.harness.programs.ports import free_ports
from tests.picker.data_layer.kv_events.followed_pod import IP, followed_pod
from tests.picker.data_layer.polling import until

from kvtier_scorer.picker.engines.kv_events.subscriber import EventPorts

SPEC = {"group_idx": 0, "kv_cache_spec_kind": "full_attention"}
EVENTS = [
    [
        (
            "BlockStored",
            {
                "block_hashes": [0, 1, 2, 3], "parent_block_hash": None, "token_ids": list(range(64)),
                "block_size": 16, "lora_id": None, "medium": "GPU", "lora_name": None,
                "extra_keys": [None] * 4, **SPEC,
            },
        )
    ],
    [
        (
            "BlockStored",
            {
                "block_hashes": [0, 1, 2], "parent_block_hash": None, "token_ids": [], "block_size": 0,
                "lora_id": None, "medium": medium, "lora_name": None, "locality": "LOCAL",
            },
        )
        for medium in ("CPU", "STORAGE")
    ],
    [("BlockRemoved", {"block_hashes": [2, 3], "medium": "GPU", "group_idx": 0})],
    [("BlockRemoved", {"block_hashes": [1, 2], "medium": "STORAGE"})],
]  # fmt: skip


@pytest.fixture(scope="module")
def ports() -> EventPorts:
    port, replay_port = free_ports(2)
    return EventPorts(port, replay_port)


@pytest.fixture(scope="module")
def publish(
    ports: EventPorts, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[object], None]]:
    """Lets a publisher in a process of its own publish events."""
    command = [sys.executable, "-m", "tests.picker.data_layer.kv_events.vllm_publisher"]
    command += [f"tcp://{IP}:{port}" for port in (ports.port, ports.replay_port)]
    log = tmp_path_factory.mktemp("vllm") / "log"
    with (
        log.open("wb") as sink,
        subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=sink, text=True) as process,  # noqa: S603
    ):
        assert process.stdin
        assert process.stdout
        stdin = process.stdin

        def line(events: object) -> None:
            stdin.write(json.dumps(events) + "\n")
            stdin.flush()

        try:
            assert "ready\n" in iter(process.stdout.readline, ""), log.read_text()
            yield line
        finally:
            stdin.close()


async def test_vllms_own_events_are_understood_from_a_replay_and_live(
    ports: EventPorts, publish: Callable[[object], None]
) -> None:
    for events in EVENTS[:2]:
        publish(events)
    async with followed_pod(ports) as followed:
        await until(lambda: followed.held == [4, 3, 3])
        for events in EVENTS[2:]:
            publish(events)
        await until(lambda: followed.held == [2, 3, 1])
        assert followed.precise
        publish([("AllBlocksCleared", {})])
        await until(lambda: followed.held == [0, 0, 0])
        assert followed.precise
