"""Who owns the object of a name: asked before an object is created by an apply.

Applying to someone else's object would change and adopt it. The API has no apply that only creates, and no
apply can remove fields from an object that a POST created (managedFields tell `Update` and `Apply` apart).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kvtier_common.errors import MomentaryError, TooLargeError
from kvtier_common.kubernetes.answers import ServerError, parse_document
from kvtier_common.kubernetes.client import METADATA_LIST, Api
from kvtier_operator.planning.objects.names import MANAGED_BY, MANAGED_BY_LABEL
from kvtier_operator.reconcile.api_server import BY_NAME, Ref
from kvtier_operator.reconcile.cache.live_object import is_orphaned, owner_of
from kvtier_operator.reconcile.settings import OwnershipTimings

_OTHERS: Final = f"{MANAGED_BY_LABEL}!={MANAGED_BY}"
_FEW: Final = 100
"""Up to so many objects of a kind in a namespace are listed at once; of more each name is asked for."""
_LIST_BYTES: Final = 512 << 10
"""Of that list: annotations may have 256 KiB each, and many such lists are asked for at a time."""
_ONE_BYTES: Final = 4 << 20
Owners = Mapping[str, str]


@dataclass(slots=True)
class OwnershipLookup:
    """Looks up the owners of objects; one list answers for all names of a kind in a namespace."""

    api: Api
    timings: OwnershipTimings = field(default_factory=OwnershipTimings)
    _lists: dict[tuple[str, str], tuple[float, asyncio.Task[Owners | None]]] = field(default_factory=dict)

    async def owner(self, ref: Ref) -> str | None:
        """Uid of the controller of the object with this name.

        Nothing of a resource is created before all its names are known to be free, so one failed request
        would hold up all of them: each request is tried several times.

        Returns:
            Empty for an object without a controller; None where there is no such object, or one that kvtier
            applied and that lost its owner.

        Raises:
            KvtierError: The server gave no answer.
        """
        failures = 0
        while True:
            try:
                return await self._owner_once(ref)
            except MomentaryError as error:
                failures += 1
                asked_to_wait = isinstance(error, ServerError) and error.retry_after_s
                # Then it comes back by the queue: nobody else's turn is held up meanwhile.
                if failures == self.timings.tries or asked_to_wait:
                    raise
                await asyncio.sleep(self.timings.retry.delay_s(failures))

    async def _owner_once(self, ref: Ref) -> str | None:
        owners = await self._list_owners(ref)
        return await self._single_owner(ref) if owners is None else owners.get(ref.name)

    async def _list_owners(self, ref: Ref) -> Owners | None:
        """Owners by name, from a list that is at most a second old; None where the list is too long."""
        now, key = asyncio.get_running_loop().time(), (ref.kind, ref.namespace)
        known = self._lists.get(key)
        if known is None or now - known[0] > self.timings.fresh_s or _has_failed(known[1]):
            self._forget(now)
            known = self._lists[key] = (now, asyncio.create_task(self._list_of_kind(*key)))
        return await asyncio.shield(known[1])

    async def _list_of_kind(self, kind: str, namespace: str) -> Owners | None:
        query = {"labelSelector": _OTHERS, "limit": str(_FEW)}
        path = BY_NAME[kind].path(namespace)
        try:
            page = parse_document(await self.api.get(path, query, METADATA_LIST, most_bytes=_LIST_BYTES))
        except TooLargeError:
            return None
        if page["metadata"].get("continue"):
            return None
        others = (each["metadata"] for each in page["items"] or ())
        return {each["name"]: owner_of(each)[0] for each in others if not is_orphaned(each)}

    async def _single_owner(self, ref: Ref) -> str | None:
        # any version that the server has at hand: what is not kvtier's was there before
        query = {"fieldSelector": f"metadata.name={ref.name}", "resourceVersion": "0"}
        path = BY_NAME[ref.kind].path(ref.namespace)
        page = parse_document(await self.api.get(path, query, METADATA_LIST, most_bytes=_ONE_BYTES))
        others = (each["metadata"] for each in page["items"] or ())
        return next((owner_of(each)[0] for each in others if not is_orphaned(each)), None)

    def _forget(self, now: float) -> None:
        for key in [key for key, (at, _) in self._lists.items() if now - at > self.timings.fresh_s]:
            del self._lists[key]


def _has_failed(task: asyncio.Task[Owners | None]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
