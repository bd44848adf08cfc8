"""Reports failed reconciliations in condition Ready and by an Event: the API server may refuse either."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kvtier_common.errors import KvtierError, MomentaryError
from kvtier_common.kubernetes.answers import NotFoundError
from kvtier_operator.reconcile.api_server import KVCACHETIER
from kvtier_operator.reconcile.apply.writer import Writer, event
from kvtier_operator.reconcile.cache.resources import CachedResource, Key, ResourceCache
from kvtier_operator.reconcile.facts.cached_plan import (
    UntimedCondition,
    unknown_condition,
    with_transition_time,
)
from kvtier_operator.reconcile.loop.reconciler import Clock
from kvtier_operator.reconcile.status.build import READY

REASON: Final = "RoundFailed"
_LOG: Final = logging.getLogger(__name__)
_UNREPORTED_FAILURES: Final = 5
"""So many momentary errors in a row are not reported: six seconds, with the queue's back-off."""


def round_failed(error: Exception) -> UntimedCondition:
    """Condition Ready with the error that stopped the reconciliation."""
    what = (
        f"{error}" if isinstance(error, KvtierError) else f"a bug in kvtier, {type(error).__name__}: {error}"
    )
    rest = "what runs goes on, the other conditions may be out of date; it is tried again"
    return unknown_condition(READY, REASON, f"the operator did not get to the end: {what}; {rest}")


def with_ready(
    status: Mapping[str, Any], condition: UntimedCondition, generation: int, now: str
) -> dict[str, Any]:
    """A status with another condition Ready; an equal status where Ready says so already."""
    before = status.get("conditions", ())
    others = [each for each in before if each["type"] != condition.type]
    return {**status, "conditions": [*others, with_transition_time(condition, before, generation, now)]}


@dataclass(frozen=True, slots=True)
class FailureReporter:
    """Reports a reconciliation that failed: in condition Ready, and by an Event."""

    writer: Writer
    resources: ResourceCache
    clock: Clock

    async def report(self, key: Key, error: Exception, failures: int) -> None:
        """Reports what stopped a reconciliation, once for as long as it is the same."""
        resource = self.resources.get(key)
        momentary = isinstance(error, MomentaryError)
        # such errors differ in a port or a time from try to try
        if resource is None or (
            momentary and (failures <= _UNREPORTED_FAILURES or resource.state.reported_failure)
        ):
            return
        ready = round_failed(error)
        previous = orjson.loads(resource.status)
        status = with_ready(previous, ready, resource.generation, self.clock.now())
        if status != previous:
            await self._write_status(key, resource, status)
        if resource.state.reported_failure != ready.message:
            resource.state.reported_failure = ready.message
            [condition] = [each for each in status["conditions"] if each["type"] == ready.type]
            await self._write_event(key, resource, condition)

    async def _write_status(self, key: Key, resource: CachedResource, status: dict[str, object]) -> None:
        try:
            self.resources.take_answer(await self.writer.status(*key, resource.uid, status))
        except NotFoundError:
            self.resources.delete(key, resource.uid)
        except KvtierError as error:
            _LOG.warning("%s: nor could the status be written: %s", key, error)

    async def _write_event(self, key: Key, resource: CachedResource, condition: dict[str, object]) -> None:
        metadata = {**key._asdict(), "uid": resource.uid, "resourceVersion": str(resource.version)}
        try:
            await self.writer.event(key.namespace, event(condition, metadata, self.clock.now()))
        except KvtierError as error:
            _LOG.warning("%s: an Event about the %s was not taken: %s", key, KVCACHETIER.kind, error)
