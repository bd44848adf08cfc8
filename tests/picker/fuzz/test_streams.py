"""Mutated sequences of ext_proc messages over a real gRPC stream."""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Final, TypeAlias

import grpc
from tests.picker.fuzz.conftest import PROCESS, Target
from tests.picker.fuzz.inputs import GOOD, MESSAGES
from tests.picker.fuzz.mutations import mutate, seeded_random
from tests.unit.scorer.picker.gateway.protocol.gateway import answer

from kvtier_scorer.picker.gateway.transport.connections import CALLS

Process: TypeAlias = "grpc.StreamStreamMultiCallable[bytes, bytes]"
SEQUENCES: Final = 10_000
WARM_UP: Final = 2_000
AT_A_TIME: Final = 8
GROWTH_BYTES: Final = 8 << 20
"""Of resident memory over 10,000 sequences after a warm-up: 0.8 KiB for each, less than a leaked call."""
CLIENTS: Final = 50
CANCELLED: Final = CALLS // 2 - 1
"""By one client: by one more its streams would be kept from it."""
OWN_CONNECTION: Final = (("grpc.use_local_subchannel_pool", 1),)
REFUSALS: Final = {400, 413, 500, 503}


def sequence(random: Random) -> list[bytes]:
    """Messages in an order that may be right, some of them broken."""
    if random.random() < 0.6:
        messages = list(GOOD) + random.choices(MESSAGES[-6:], k=random.randrange(3))
    else:
        messages = random.choices(MESSAGES, k=random.randint(1, 5))
    return [
        mutate(random, [message, *MESSAGES]) if random.random() < 0.25 else message for message in messages
    ]


def told(process: Process, messages: list[bytes]) -> str:
    """Sends a sequence and checks every answer; returns what came of it."""
    last, failed = "", None
    try:
        for message in process(iter(messages)):
            parsed = answer(message)
            last = parsed.WhichOneof("response") or ""
            assert last
            if parsed.HasField("immediate_response"):
                assert parsed.immediate_response.status.code in REFUSALS
                last = str(parsed.immediate_response.status.code)
    except grpc.RpcError as error:
        failed = error
    if failed is None:
        return last or "nothing"
    assert failed.code() == grpc.StatusCode.INVALID_ARGUMENT, (failed, messages)
    return "INVALID_ARGUMENT"


def fuzz(target: Target, random: Random, count: int) -> Counter[str]:
    """Runs sequences, a few at a time over one connection."""
    sequences = [sequence(random) for _ in range(count)]
    with grpc.insecure_channel(target.address) as channel:
        process: Process = channel.stream_stream(PROCESS)
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            seen = Counter(pool.map(lambda messages: told(process, messages), sequences))
        target.check_unharmed()  # while the connection is there, with what it may hold
    return seen


def test_sequences_are_answered_or_refused_and_leave_nothing_behind(target: Target) -> None:
    random = seeded_random(6)
    fuzz(target, random, WARM_UP)
    before = target.memory_bytes
    seen = fuzz(target, random, SEQUENCES)
    assert target.memory_bytes - before < GROWTH_BYTES
    assert seen.total() == SEQUENCES
    # sequences that all end alike would test little
    assert (
        min(seen[outcome] for outcome in ("INVALID_ARGUMENT", "400", "500", "503", "request_body", "nothing"))
        > 50
    ), seen


async def test_clients_that_cancel_leave_nothing_behind(target: Target) -> None:
    random = seeded_random(7)
    for _ in range(CLIENTS):
        async with grpc.aio.insecure_channel(target.address, OWN_CONNECTION) as channel:
            process: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(PROCESS)
            for _ in range(CANCELLED):
                call = process()
                for message in GOOD[: random.randint(1, 2)]:
                    await call.write(message)
                if random.random() < 0.5:
                    await asyncio.wait({asyncio.ensure_future(call.read())}, timeout=0)
                call.cancel()
            await asyncio.to_thread(target.check_unharmed)
