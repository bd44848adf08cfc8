"""One side of the comparison as a process: moves values, and prints what that took as JSON.

python sides.py SIDE DEED PORT SIZE_BYTES VALUES ROUNDS, by any Python that has the side's client.
"""

import json
import mmap
import socket
import sys
import time
from collections.abc import Callable
from functools import partial

DEPTH = 2  # values requested at a time
_TIMEOUT_S = 60.0
Move = Callable[[list[memoryview]], None]
"""Moves a round of values, value i under key i."""


def key(number: int) -> bytes:
    return b"kvtier:bench:{%06d}:0" % number


def kvtier(deed: str, port: int) -> Move:
    from kvtier_connector.core.remote.resp.connect import Access, connect_one  # noqa: PLC0415
    from kvtier_connector.core.remote.resp.url import parse_url  # noqa: PLC0415
    from kvtier_connector.core.remote.store import Value  # noqa: PLC0415

    access = Access(parse_url(f"redis://127.0.0.1:{port}"))
    connection = connect_one(access, access.url.addresses[0])

    def put(memory: list[memoryview]) -> None:
        for number, view in enumerate(memory):
            connection.put(Value(key(number), (view,)), 0, _TIMEOUT_S)

    def get(memory: list[memoryview]) -> None:
        for number, view in enumerate(memory):
            connection.request(Value(key(number), (view,)))
            if number >= DEPTH - 1 and not connection.receive(_TIMEOUT_S):
                raise LookupError("a value is absent")
        for _ in range(DEPTH - 1):
            if not connection.receive(_TIMEOUT_S):
                raise LookupError("a value is absent")

    return put if deed == "SET" else get


def sockets(deed: str, port: int) -> Move:
    """The same bytes by nothing but the calls that move them: no deadline, and no answer is looked at."""
    connected = socket.create_connection(("127.0.0.1", port))
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    spare = memoryview(bytearray(64))
    take = partial(receive_all, connected)

    def put(memory: list[memoryview]) -> None:
        for number, view in enumerate(memory):
            name = key(number)
            head = b"*3\r\n$3\r\nSET\r\n$%d\r\n%b\r\n$%d\r\n" % (len(name), name, len(view))
            connected.sendall(head)
            connected.sendall(view)
            connected.sendall(b"\r\n")
            take(spare[: len(b"+OK\r\n")])

    def ask(number: int) -> None:
        name = key(number)
        connected.sendall(b"*2\r\n$3\r\nGET\r\n$%d\r\n%b\r\n" % (len(name), name))

    def receive(view: memoryview) -> None:
        take(spare[: len(b"$%d\r\n" % len(view))])
        take(view)
        take(spare[:2])

    def get(memory: list[memoryview]) -> None:
        ask(0)
        for number, view in enumerate(memory):
            if number + 1 < len(memory):
                ask(number + 1)
            receive(view)

    return put if deed == "SET" else get


def receive_all(connected: socket.socket, view: memoryview) -> None:
    while view:
        size = connected.recv_into(view)
        if not size:
            raise ConnectionResetError
        view = view[size:]


def redis_py(deed: str, port: int) -> Move:
    import redis  # type: ignore[import-not-found] # noqa: PLC0415 - of another environment

    client = redis.Redis(port=port)

    def put(memory: list[memoryview]) -> None:
        for number, view in enumerate(memory):
            client.set(key(number), view)

    def get(memory: list[memoryview]) -> None:
        """It has no way into memory, so what it returns is copied."""
        for first in range(0, len(memory), DEPTH):
            pipeline = client.pipeline(transaction=False)
            for number in range(first, min(first + DEPTH, len(memory))):
                pipeline.get(key(number))
            for number, value in enumerate(pipeline.execute(), first):
                memory[number][:] = value

    return put if deed == "SET" else get


SIDES = {"kvtier": kvtier, "sockets": sockets, "redis-py": redis_py}


def main() -> None:
    side, deed, *numbers = sys.argv[1:]
    port, size_bytes, values, rounds = map(int, numbers)
    region = memoryview(mmap.mmap(-1, size_bytes * values))
    for place in range(0, len(region), mmap.PAGESIZE):  # all of it is there before the clock starts
        region[place : place + 8] = place.to_bytes(8, "little")
    memory = [region[number * size_bytes :][:size_bytes] for number in range(values)]
    move = SIDES[side](deed, port)
    move(memory[:DEPTH])
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    for _ in range(rounds):
        move(memory)
    print(json.dumps({"s": time.perf_counter() - wall_s, "cpu_s": time.process_time() - cpu_s}))  # noqa: T201 - read by who started it


if __name__ == "__main__":
    main()
