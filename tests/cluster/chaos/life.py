"""A resource's whole life, the same every time: created, changed in much, deleted."""

import asyncio
import difflib
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from tests.cluster.chaos.snapshot import snapshot
from tests.cluster.harness.api.conditions import is_ready
from tests.cluster.harness.api.connection import Connection, collection
from tests.cluster.harness.operator.shipped import RESTRICTED

_DEADLINE_S: Final = 60.0
_POLL_S: Final = 0.1
_NAME: Final = "life"
Found = TypeVar("Found")
# Fewer replicas and no route any more, more memory: objects change, appear and go.
_CHANGE: Final = {
    "spec": {
        "replicas": 1,
        "tiers": {"cpu": {"capacity": "20Gi"}},
        "router": {"gateway": None, "weights": {"cpuPrefix": 3}},
    }
}


def _resource(namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "kvtier.dev/v1alpha1",
        "kind": "KVCacheTier",
        "metadata": {"name": _NAME, "namespace": namespace},
        "spec": {
            "model": {"name": "Qwen/Qwen3-32B"},
            "replicas": 2,
            "engine": {"tensorParallelSize": 2},
            "tiers": {"cpu": {"capacity": "10Gi"}},
            "router": {"gateway": {"parentRef": {"name": "gateway"}}},
        },
    }


class Life:
    """One resource in a namespace of its own."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection = connection
        self.namespace = namespace
        self._path = collection("KVCacheTier", namespace)

    async def create(self) -> None:
        """Creates namespace and resource."""
        await self._connection.request(
            "POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace, "labels": RESTRICTED}}
        )
        await self._connection.request("POST", self._path, _resource(self.namespace))

    async def change(self) -> None:
        """Changes it so that objects change, come and go."""
        await self._connection.request("PATCH", f"{self._path}/{_NAME}", _CHANGE)

    async def delete(self) -> None:
        """Deletes it."""
        await self._connection.request("DELETE", f"{self._path}/{_NAME}")

    async def settled(self, deadline_s: float = _DEADLINE_S) -> str:
        """What the namespace holds once the resource is Ready as it is now and nothing changes.

        Raises:
            AssertionError: It does not come to that within the time.
        """

        async def look() -> str:
            resource = await self._connection.request("GET", f"{self._path}/{_NAME}")
            return await snapshot(self._connection, self.namespace) if is_ready(resource) else ""

        last = ""

        async def twice() -> str:
            nonlocal last
            before, last = last, await look()
            return last if last == before else ""

        try:
            return await _until(twice, deadline_s)
        except TimeoutError:
            resource = await self._connection.request("GET", f"{self._path}/{_NAME}")
            told = json.dumps(resource.get("status"), indent=1)
            raise AssertionError(f"{self.namespace} does not settle: {told}") from None

    async def becomes(self, expected: str, deadline_s: float = _DEADLINE_S) -> None:
        """Waits until the namespace holds exactly what is expected.

        Raises:
            AssertionError: It does not within the time; the message is the difference.
        """
        found = ""

        async def look() -> bool:
            nonlocal found
            found = await snapshot(self._connection, self.namespace)
            return found == expected

        try:
            await _until(look, deadline_s)
        except TimeoutError:
            lines = difflib.unified_diff(
                expected.splitlines(), found.splitlines(), "undisturbed", "found", n=2
            )
            raise AssertionError(f"{self.namespace}:\n" + "\n".join(lines)) from None


async def _until(look: Callable[[], Awaitable[Found]], deadline_s: float) -> Found:
    """The first true thing found; a look is many requests, for which there is no one watch.

    Raises:
        TimeoutError: Nothing within the time.
    """
    deadline = time.monotonic() + deadline_s
    while not (found := await look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing after {deadline_s:.0f} s")
        await asyncio.sleep(_POLL_S)
    return found
