"""vLLM's own publisher of KV events as a process: events as JSON lines in, ZeroMQ out.

Each line is a list of events: a class of vllm.distributed.kv_events and its fields, hashes as numbers.
It says `ready` when it listens, and ends with its standard input.
"""

import json
import sys
import time

from vllm.distributed.kv_events import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    KVEventBatch,
    ZmqEventPublisher,
)

_KINDS = {each.__name__: each for each in (AllBlocksCleared, BlockRemoved, BlockStored)}


class LoopbackPublisher(ZmqEventPublisher):  # type: ignore[misc] # vLLM is not type-checked
    """Binds to the address that it is given; vLLM's binds to every one or connects."""

    @staticmethod
    def _is_bind_endpoint(endpoint: str) -> bool:
        return bool(endpoint)


def main() -> None:
    """Run until standard input ends."""
    events, replay = sys.argv[1:]
    publisher = LoopbackPublisher(0, events, replay)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        told = [_KINDS[kind](**fields) for kind, fields in json.loads(line)]
        publisher.publish(KVEventBatch(ts=time.time(), events=told))
    publisher.shutdown()


if __name__ == "__main__":
    main()
