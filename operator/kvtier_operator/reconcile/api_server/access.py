"""Whether the KVCacheTiers of the served namespaces can be read, and if not, why."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kvtier_common.errors import KvtierError
from kvtier_common.kubernetes.client import Api
from kvtier_common.kubernetes.errors import ForbiddenError, NotFoundError
from kvtier_operator.reconcile.api_server.kinds import KVCACHETIER
from kvtier_operator.reconcile.settings.timings import AccessTimings

_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class Access:
    """Asks again and again whether KVCacheTiers can be read.

    Attributes:
        api: The API server.
        namespaces: Namespaces to read; none for the whole cluster.
        timings: How often it asks.
    """

    api: Api
    namespaces: Sequence[str]
    timings: AccessTimings
    _refusals: dict[str | None, str] = field(init=False)
    _readable: dict[str | None, asyncio.Event] = field(init=False)
    _somewhere: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        places = tuple(self.namespaces) or (None,)
        self._refusals = dict.fromkeys(places, "")
        self._readable = {place: asyncio.Event() for place in places}

    def refusals(self) -> list[str]:
        """Why KVCacheTiers cannot be read, one line each; nothing while they can in all namespaces."""
        return [*dict.fromkeys(why or "the API server was not asked yet" for why in self._refusals.values())]

    async def run(self) -> None:
        """Asks for all namespaces until cancelled, and logs each refusal once."""
        async with asyncio.TaskGroup() as group:
            for place in self._readable:
                group.create_task(self._keep_asking(place), name=f"access to {place or 'all namespaces'}")

    async def _keep_asking(self, place: str | None) -> None:
        while True:
            await self._ask(place)
            await asyncio.sleep(
                self.timings.refused_s if place in self._refusals else self.timings.readable_s
            )

    async def until_readable_somewhere(self) -> None:
        """Waits until KVCacheTiers of one namespace can be read."""
        await self._somewhere.wait()

    async def until_readable(self, place: str | None) -> None:
        """Waits until those of a namespace can be read, or of the whole cluster where None."""
        await self._readable[place].wait()

    async def _ask(self, place: str | None) -> None:
        try:
            await self.api.get(KVCACHETIER.path(place), {"limit": "1"})
        except KvtierError as error:
            if self._readable[place].is_set() and not isinstance(error, ForbiddenError | NotFoundError):
                return  # the server is away; the rights are what they were
            why = _why(place, error)
            if why not in self._refusals.values():
                _LOG.warning("%s; waiting", why)
            self._refusals[place] = why
        else:
            self._refusals.pop(place, None)
            self._readable[place].set()
            self._somewhere.set()


def _why(place: str | None, error: KvtierError) -> str:
    """Why it cannot be read, and what to do."""
    match error:
        case NotFoundError():
            return f"the CRD {KVCACHETIER.crd} is not installed: install it"
        case ForbiddenError() if place is not None:
            return (
                f"namespace {place} does not exist, or the operator has no rights there: make the namespace "
                f"and a Role in it, as the chart does for watchNamespaces, or leave it out ({error})"
            )
        case ForbiddenError():
            return (
                f"the operator has no rights to the whole cluster: give it the chart's ClusterRole ({error})"
            )
        case _:
            return str(error)
