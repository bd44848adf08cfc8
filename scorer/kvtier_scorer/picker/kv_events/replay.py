"""Asks a publisher for messages that were missed (vllm/distributed/kv_events.py: _service_replay)."""

import asyncio
from typing import Final

import zmq
import zmq.asyncio

TIMEOUT_S: Final = 2.0
_NUMBER_BYTES: Final = 8
_END: Final = -1
_FRAMES: Final = 4
"""What a REQ socket would strip, the topic, the number, the payload."""


class ReplayError(Exception):
    """The publisher did not replay; the message says why, in one line."""


async def replay(
    context: zmq.asyncio.Context, endpoint: str, first: int, timeout_s: float = TIMEOUT_S
) -> list[tuple[int, bytes]]:
    """The messages from number `first` on that the publisher still has, in their order.

    Raises:
        ReplayError: It cannot be reached, does not end in time, or answers something else.
    """
    messages: list[tuple[int, bytes]] = []
    socket = context.socket(zmq.DEALER)
    try:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.IPV6, 1)
        socket.setsockopt(zmq.RCVHWM, 0)  # the publisher drops what it cannot send at once
        socket.connect(endpoint)
        async with asyncio.timeout(timeout_s):
            await socket.send_multipart([b"", first.to_bytes(_NUMBER_BYTES, "big")])
            while True:
                frames = await socket.recv_multipart()
                if len(frames) != _FRAMES or len(frames[2]) != _NUMBER_BYTES:
                    raise ReplayError(f"{endpoint} answers a replay with something else")
                number = int.from_bytes(frames[2], "big", signed=True)
                if number == _END:
                    return messages
                messages.append((number, frames[3]))
    except TimeoutError as error:
        raise ReplayError(f"{endpoint} does not replay within {timeout_s:g} s") from error
    except zmq.ZMQError as error:
        raise ReplayError(f"{endpoint} cannot be asked for a replay: {error}") from error
    finally:
        socket.close()
