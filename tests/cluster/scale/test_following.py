"""A collection is followed until enough of it is done, however often the server ends the watch."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.cluster.scale.following import follow_until

if TYPE_CHECKING:
    from tests.cluster.harness.connection import Connection

_Event = tuple[str, dict[str, Any]]


def _event(kind: str, uid: str, *, done: bool) -> _Event:
    return kind, {"metadata": {"uid": uid}, "done": done}


class _Watches:
    """Each watch tells so much and ends."""

    def __init__(self, *watches: list[_Event]) -> None:
        self.left = list(watches)

    async def events(self, _path: str) -> AsyncIterator[_Event]:
        for event in self.left.pop(0):
            yield event


@pytest.mark.parametrize(
    "first",
    [
        [_event("ADDED", "a", done=True)],
        [_event("ADDED", "a", done=True), ("ERROR", {"kind": "Status", "code": 410})],
    ],
)
def test_a_watch_that_ends_is_begun_again(first: list[_Event]) -> None:
    second = [_event("ADDED", "b", done=False), _event("MODIFIED", "b", done=True)]
    third = [_event("ADDED", each, done=True) for each in ("a", "b", "c")]
    watches = _Watches(first, second, third)
    asyncio.run(follow_until(cast("Connection", watches), "/things", lambda each: bool(each["done"]), 2))
    assert watches.left == []
