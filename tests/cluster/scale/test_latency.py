"""The time to a resource's last object, as watches see it that end when they like."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.cluster.harness.api.connection import WatchEndedError, collection
from tests.cluster.scale import fleet
from tests.cluster.scale.latency import creation_to_last_object_ms

if TYPE_CHECKING:
    from tests.cluster.harness.api.connection import Connection

_PATIENCE_S = 30.0


class _Server:
    """Makes each resource's objects when it is created; a watch of one kind may end then.

    Args:
        ends: The kind whose watch ends without having told anything.
    """

    def __init__(self, ends: str | None = None) -> None:
        self.ends = ends
        self.told: dict[str, asyncio.Queue[Mapping[str, Any]]] = {}

    async def create_all(self, resources: Iterable[Mapping[str, Any]]) -> None:
        for resource in resources:
            number = int(resource["metadata"]["name"].rpartition("-")[2])
            for made in fleet.objects(number):
                self.told[collection(made["kind"], fleet.NAMESPACE)].put_nowait(made)

    async def events(
        self, path: str, started: Callable[[], Awaitable[object]]
    ) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        queue = self.told[path] = asyncio.Queue()
        await started()
        while True:
            made = await queue.get()
            if self.ends is not None and path == collection(self.ends, fleet.NAMESPACE):
                raise WatchEndedError(f"the watch of {path} ended")
            yield "ADDED", made


async def _measured(server: _Server) -> list[float]:
    async with asyncio.timeout(_PATIENCE_S):
        return await creation_to_last_object_ms(cast("Connection", server), range(2), every_s=0.0)


def test_each_resource_has_its_time() -> None:
    times_ms = asyncio.run(_measured(_Server()))
    assert len(times_ms) == 2
    assert min(times_ms) > 0


def test_a_watch_that_ends_is_an_error_and_no_wait() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(_measured(_Server(ends="ConfigMap")))
    (error,) = raised.value.exceptions
    assert isinstance(error, WatchEndedError)
    assert "configmaps ended" in str(error)
    assert error.__notes__ == ["run the benchmark again"]
