"""Asks a publisher for messages that were missed (vllm/distributed/kv_events.py: _service_replay)."""

import asyncio
from collections.abc import Callable, Generator
from typing import Final

from kvtier_scorer.picker.engines.kv_events.publisher.endpoints import EventEndpoint
from kvtier_scorer.picker.engines.kv_events.publisher.rate_limit import MOST_REPLAY_BYTES, MOST_REPLAYED
from kvtier_scorer.picker.engines.kv_events.publisher.steps import in_steps
from kvtier_scorer.picker.engines.kv_events.publisher.zmtp import Connection, ZmtpError, connected

TIMEOUT_S: Final = 2.0
_NUMBER_BYTES: Final = 8
_END: Final = -1
_FRAMES: Final = 4
"""What a REQ socket would strip, the topic, the number, the payload."""


class ReplayError(Exception):
    """The publisher did not replay; the message says why, in one line."""


async def replay(
    endpoint: EventEndpoint,
    first: int,
    take: Callable[[int, bytes], Generator[int]],
    timeout_s: float = TIMEOUT_S,
) -> None:
    """Takes the messages from number `first` on that the publisher still has, in their order.

    Args:
        endpoint: Where it replays.
        first: The number.
        take: Takes each message's number and payload as it comes, in steps: what all of them come to is
            never held.
        timeout_s: For all of it.

    Raises:
        ReplayError: It cannot be reached, does not end in time or in bounds, or answers something else.
            What was taken until then stays.
    """
    try:
        async with (
            asyncio.timeout(timeout_s),
            connected(endpoint.host, endpoint.port, "DEALER", asyncio.Semaphore()) as connection,
        ):
            connection.send(b"", first.to_bytes(_NUMBER_BYTES, "big"))
            await _take_all(connection, endpoint, take)
    except TimeoutError as error:
        raise ReplayError(f"{endpoint} does not replay within {timeout_s:g} s") from error
    except (OSError, EOFError, ZmtpError) as error:
        raise ReplayError(f"{endpoint} cannot be asked for a replay: {error}") from error


async def _take_all(
    connection: Connection, endpoint: EventEndpoint, take: Callable[[int, bytes], Generator[int]]
) -> None:
    size_bytes = count = 0
    while size_bytes <= MOST_REPLAY_BYTES and count <= MOST_REPLAYED:
        async with connection.message() as frames:
            count += 1
            size_bytes += sum(map(len, frames))
            if not frames:
                continue
            if len(frames) != _FRAMES or len(frames[2]) != _NUMBER_BYTES:
                raise ReplayError(f"{endpoint} answers a replay with something else")
            number = int.from_bytes(frames[2], "big", signed=True)
            if number == _END:
                return
            await in_steps(take(number, frames[3]))
        await asyncio.sleep(0)
    raise ReplayError(f"{endpoint} replays more than any engine keeps")
