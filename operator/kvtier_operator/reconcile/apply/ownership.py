"""Whose the object of a name is, before something is applied under it.

Applying to someone else's object would change and adopt it; the API has no apply that only creates, and what
a POST creates no later apply takes fields away from (managedFields tell `Update` and `Apply` apart).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import orjson

from kvtier_operator.planning.objects.names import MANAGED_BY, MANAGED_BY_LABEL
from kvtier_operator.reconcile.api_server.client import METADATA_LIST, Api
from kvtier_operator.reconcile.api_server.errors import MomentaryError, ServerError, TooLargeError
from kvtier_operator.reconcile.api_server.kinds import BY_NAME, Ref
from kvtier_operator.reconcile.cache.live_object import is_lost, owner_of
from kvtier_operator.reconcile.loop.work_queue import backoff_s

_OTHERS: Final = f"{MANAGED_BY_LABEL}!={MANAGED_BY}"
_FEW: Final = 100
"""Up to so many objects of a kind in a namespace, one list of them serves all that is made there just now."""
_LIST_BYTES: Final = 512 << 10
"""Of that list: annotations may have 256 KiB each, and many such lists are asked for at a time."""
_ONE_BYTES: Final = 4 << 20
_FRESH_S: Final = 1.0
_TRIES: Final = 5
"""Three seconds with the queue's back-off. Where three calls in ten fail, lists of 9 kinds all come in 98 of
100 rounds; asked for once each, in 4."""

Owners = Mapping[str, str]


@dataclass(slots=True)
class Taken:
    """Looks names up, several resources' at a time."""

    api: Api
    _lists: dict[tuple[str, str], tuple[float, asyncio.Task[Owners | None]]] = field(default_factory=dict)

    async def owner(self, ref: Ref) -> str | None:
        """Uid of the KVCacheTier that controls the object of this name.

        Nothing of a resource is made before all its names are known to be free, so one answer that does not
        come holds up everything: each is asked for several times.

        Returns:
            Empty for an object that none controls; None where there is no such object, or kvtier's own that
            lost its owner.

        Raises:
            KvtierError: The server did not say.
        """
        failures = 0
        while True:
            try:
                return await self._look(ref)
            except MomentaryError as error:
                failures += 1
                asked_to_wait = isinstance(error, ServerError) and error.retry_after_s
                # Then it comes back by the queue: nobody else's turn is held up meanwhile.
                if failures == _TRIES or asked_to_wait:
                    raise
                await asyncio.sleep(backoff_s(failures))

    async def _look(self, ref: Ref) -> str | None:
        owners = await self._others(ref)
        return await self._one(ref) if owners is None else owners.get(ref.name)

    async def _others(self, ref: Ref) -> Owners | None:
        """Owners by name, of a list that is at most a second old; None where that would be too much."""
        now, key = asyncio.get_running_loop().time(), (ref.kind, ref.namespace)
        known = self._lists.get(key)
        if known is None or now - known[0] > _FRESH_S or _failed(known[1]):
            self._forget(now)
            known = self._lists[key] = (now, asyncio.create_task(self._list(*key)))
        return await asyncio.shield(known[1])

    async def _list(self, kind: str, namespace: str) -> Owners | None:
        query = {"labelSelector": _OTHERS, "limit": str(_FEW)}
        path = BY_NAME[kind].path(namespace)
        try:
            page = orjson.loads(await self.api.get(path, query, METADATA_LIST, most_bytes=_LIST_BYTES))
        except TooLargeError:
            return None
        if page["metadata"].get("continue"):
            return None
        others = (each["metadata"] for each in page["items"] or ())
        return {each["name"]: owner_of(each)[0] for each in others if not is_lost(each)}

    async def _one(self, ref: Ref) -> str | None:
        # any version that the server has at hand: what is not kvtier's was there before
        query = {"fieldSelector": f"metadata.name={ref.name}", "resourceVersion": "0"}
        path = BY_NAME[ref.kind].path(ref.namespace)
        page = orjson.loads(await self.api.get(path, query, METADATA_LIST, most_bytes=_ONE_BYTES))
        others = (each["metadata"] for each in page["items"] or ())
        return next((owner_of(each)[0] for each in others if not is_lost(each)), None)

    def _forget(self, now: float) -> None:
        for key in [key for key, (at, _) in self._lists.items() if now - at > _FRESH_S]:
            del self._lists[key]


def _failed(task: asyncio.Task[Owners | None]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
