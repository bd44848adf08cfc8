"""Tells of rounds that came to no end: in the status and by an Event, for either may be what is refused."""

import logging
from dataclasses import dataclass
from typing import Final

import orjson

from kvtier_operator.errors import KvtierError
from kvtier_operator.reconcile.api_server.errors import MomentaryError, NotFoundError
from kvtier_operator.reconcile.api_server.kinds import TIER
from kvtier_operator.reconcile.apply.events import event
from kvtier_operator.reconcile.apply.writer import Writer
from kvtier_operator.reconcile.cache.resources import Key, Tier, Tiers
from kvtier_operator.reconcile.loop.clock import Clock
from kvtier_operator.reconcile.status.round_failed import round_failed, with_ready

_LOG: Final = logging.getLogger(__name__)
_PASSING: Final = 5
"""So many momentary errors in a row are nobody's business: with the queue's back-off, six seconds."""


@dataclass(frozen=True, slots=True)
class FailedRounds:
    """Tells of them.

    Attributes:
        writer: Writes to the API server.
        tiers: The resources.
        clock: The time of day.
    """

    writer: Writer
    tiers: Tiers
    clock: Clock

    async def tell(self, key: Key, error: Exception, failures: int) -> None:
        """Says what stopped a round, once.

        Args:
            key: The resource that the round was about.
            error: What stopped it.
            failures: Rounds in a row that came to no end, this one included.
        """
        tier = self.tiers.get(key)
        momentary = isinstance(error, MomentaryError)
        # such errors differ in a port or a time from try to try
        if tier is None or (momentary and (failures <= _PASSING or tier.memory.told)):
            return
        verdict = round_failed(error)
        previous = orjson.loads(tier.status)
        status = with_ready(previous, verdict, tier.generation, self.clock.now())
        if status != previous:
            await self._write(key, tier, status)
        if tier.memory.told != verdict.message:
            tier.memory.told = verdict.message
            [condition] = [each for each in status["conditions"] if each["type"] == verdict.type]
            await self._announce(key, tier, condition)

    async def _write(self, key: Key, tier: Tier, status: dict[str, object]) -> None:
        try:
            self.tiers.written(await self.writer.status(*key, tier.uid, status))
        except NotFoundError:
            self.tiers.gone(key, tier.uid)
        except KvtierError as error:
            _LOG.warning("%s: nor could the status be written: %s", key, error)

    async def _announce(self, key: Key, tier: Tier, condition: dict[str, object]) -> None:
        metadata = {**key._asdict(), "uid": tier.uid, "resourceVersion": str(tier.version)}
        try:
            await self.writer.event(key.namespace, event(condition, metadata, self.clock.now()))
        except KvtierError as error:
            _LOG.warning("%s: an Event about the %s was not taken: %s", key, TIER.kind, error)
