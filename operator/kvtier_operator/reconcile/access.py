"""Whether the KVCacheTiers can be read wherever they are to be served."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kvtier_operator.errors import KvtierError
from kvtier_operator.reconcile.client import Api
from kvtier_operator.reconcile.errors import ForbiddenError, NotFoundError
from kvtier_operator.reconcile.kinds import TIER

_LOG: Final = logging.getLogger(__name__)
_ASK_AGAIN_S: Final = 2.0


@dataclass(slots=True)
class Access:
    """What is in the way of reading them.

    Attributes:
        api: The API server.
        namespaces: Where to read; none for everywhere.
    """

    api: Api
    namespaces: Sequence[str]
    _refusals: dict[str | None, str] = field(init=False)

    def __post_init__(self) -> None:
        self._refusals = dict.fromkeys(tuple(self.namespaces) or (None,), "")

    def refusals(self) -> list[str]:
        """Why it cannot be done, one line each; nothing once it can everywhere."""
        return [*dict.fromkeys(why or "the API server was not asked yet" for why in self._refusals.values())]

    async def wait(self) -> None:
        """Asks until it can be done everywhere, and says once what is in the way."""
        while True:
            for place in [*self._refusals]:
                await self._ask(place)
            if not self._refusals:
                return
            await asyncio.sleep(_ASK_AGAIN_S)

    async def _ask(self, place: str | None) -> None:
        try:
            await self.api.get(TIER.path(place), {"limit": "1"})
        except KvtierError as error:
            why = _why(place, error)
            if why not in self._refusals.values():
                _LOG.warning("%s; waiting", why)
            self._refusals[place] = why
        else:
            del self._refusals[place]


def _why(place: str | None, error: KvtierError) -> str:
    """What is wrong and what to do."""
    match error:
        case NotFoundError():
            return f"the CRD {TIER.crd} is not installed: install it"
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
