"""A collection is followed until enough of it is done, however often the server ends the watch."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

from tests.cluster.harness.api.connection import WatchEndedError
from tests.cluster.scale.following import follow_until

if TYPE_CHECKING:
    from tests.cluster.harness.api.connection import Connection

_Event = tuple[str, dict[str, Any]]


def _event(kind: str, uid: str, *, done: bool) -> _Event:
    return kind, {"metadata": {"uid": uid}, "done": done}


class _Watches:
    """Each watch tells so much and ends."""

    def __init__(self, *watches: list[_Event]) -> None:
        self.left = list(watches)

    async def events(self, path: str) -> AsyncIterator[_Event]:
        for event in self.left.pop(0):
            yield event
        raise WatchEndedError(f"the watch of {path} ended")


def test_a_watch_that_ends_is_begun_again() -> None:
    first = [_event("ADDED", "a", done=True)]
    second = [_event("ADDED", "b", done=False), _event("MODIFIED", "b", done=True)]
    third = [_event("ADDED", name, done=True) for name in ("a", "b", "c")]
    watches = _Watches(first, second, third)
    asyncio.run(follow_until(cast("Connection", watches), "/things", lambda each: bool(each["done"]), 2))
    assert watches.left == []
