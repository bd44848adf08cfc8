"""Watching a collection until enough of it is as it should be."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from tests.cluster.harness.api.connection import Connection, WatchEndedError


async def follow_until(
    connection: Connection, path: str, is_done: Callable[[Mapping[str, Any]], bool], count: int
) -> None:
    """Returns when `count` objects of a collection are done at the same time.

    An API server ends a watch that does not keep up with it, so what ends is begun again.
    """
    while True:
        done: set[str] = set()
        with suppress(WatchEndedError):
            async for kind, event in connection.events(path):
                uid = event["metadata"]["uid"]
                if kind != "DELETED" and is_done(event):
                    done.add(uid)
                else:
                    done.discard(uid)
                if len(done) >= count:
                    return
