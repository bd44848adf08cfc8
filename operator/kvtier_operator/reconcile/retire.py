"""Which engines go first when an autoscaler wants fewer: those that hold least."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import aiohttp

from kvtier_common.errors import KvtierError
from kvtier_common.kubernetes.answers import ForbiddenError
from kvtier_common.kubernetes.client import Api
from kvtier_common.metrics.answer import metrics_session, read_metrics
from kvtier_common.metrics.text import Families
from kvtier_common.metrics.tier_metrics import CACHED_TOKENS, CAPACITY_TOKENS
from kvtier_common.tier import OF_A_POD
from kvtier_operator.reconcile.apply.writer import Writer
from kvtier_operator.reconcile.cache.pods import DELETION_COST, PodCache, ServingPod
from kvtier_operator.reconcile.cache.resources import Key
from kvtier_operator.reconcile.observe.engines import belongs_to
from kvtier_operator.reconcile.settings import RetireTimings

READ: Final = (*CACHED_TOKENS.values(), *CAPACITY_TOKENS.values())
"""Names of the samples of which something is read."""
_STEP: Final = 10
"""Percent: each change is a write to the API server, and Kubernetes asks for few of them."""
_FULL: Final = 100
_LOG: Final = logging.getLogger(__name__)
_RESOURCES_AT_A_TIME: Final = 8
_PODS_AT_A_TIME: Final = 4
"""Of one resource."""
_MOST_CHARACTERS: Final = 300
"""Characters of an engine's answer that a log line quotes."""


def fill_percent(families: Families) -> float | None:
    """How full all tiers of a pod beyond the device are together, 0 to 100; None where nothing tells it.

    Engines of one Deployment have tiers of one size, so the one that is least full holds least.
    """
    capacity = sum(families.total(CAPACITY_TOKENS[tier]) for tier in OF_A_POD[1:])
    held = sum(families.total(CACHED_TOKENS[tier]) for tier in OF_A_POD[1:])
    return min(held / capacity, 1.0) * _FULL if capacity > 0 else None


def deletion_cost(fill: float, before: str) -> str:
    """The annotation's value for tiers filled so many percent: a multiple of ten.

    The one that was there stays while it is less than a step away; `before` is empty for none.
    """
    if before.isascii() and before.isdigit() and abs(int(before) - fill) < _STEP:
        return before
    return str(round(fill / _STEP) * _STEP)


class Scaled(NamedTuple):
    """A resource whose engines an autoscaler scales, and which say how full they are."""

    key: Key
    deployment_uid: str
    engine_port: int


class _Owned(NamedTuple):
    """A ReplicaSet of a Deployment: its owner is looked up once, for that does not change."""

    replica_set: str
    replica_set_uid: str
    deployment_uid: str


@dataclass(slots=True)
class Retirement:
    """Annotates engines of autoscaled resources with what it costs to lose them.

    Kubernetes looks at it when a ReplicaSet gets smaller: pods that are not ready go before, and of two that
    cost the same the younger one. An annotation that somebody else wrote stays.
    """

    api: Api  # answers which Deployment owns a ReplicaSet
    pods: PodCache  # ready engines and the annotations that they have
    scaled: Callable[[], Iterator[Scaled]]  # the resources to look at
    timings: RetireTimings  # how often
    request_s: float  # longest time that an engine's answer may take
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_RESOURCES_AT_A_TIME))
    _owned: set[_Owned] = field(default_factory=set)
    _owned_now: set[_Owned] = field(default_factory=set)
    _refused_until: dict[str, float] = field(default_factory=dict)
    """By namespace, in the loop's time."""
    _is_told: bool = False

    async def run(self) -> None:
        """Looks at all engines, again and again, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(self.timings.round_s)

    async def look(self) -> None:
        """Looks at all engines once."""
        now_s = _now()
        self._refused_until = {name: end for name, end in self._refused_until.items() if end > now_s}
        async with (
            metrics_session(self.request_s, "kvtier-operator") as session,
            asyncio.TaskGroup() as group,
        ):
            for scaled in self.scaled():
                group.create_task(self._annotate_all(session, scaled), name=f"fill of {scaled.key}")
        self._owned, self._owned_now = self._owned_now, set()

    async def _annotate_all(self, session: aiohttp.ClientSession, scaled: Scaled) -> None:
        """All engines of a resource, in its turn, which ends although they are slow to answer."""
        async with self._turns:
            if scaled.key.namespace in self._refused_until:
                return
            try:
                async with asyncio.timeout(self.timings.resource_s):
                    await self._annotate_each(session, scaled)
            except TimeoutError:
                _LOG.debug("%s: not all engines have answered in %g s", scaled.key, self.timings.resource_s)
            except KvtierError as error:
                _LOG.debug("%s: whose its pods are was not seen: %s", scaled.key, error)

    async def _annotate_each(self, session: aiohttp.ClientSession, scaled: Scaled) -> None:
        turns = asyncio.Semaphore(_PODS_AT_A_TIME)
        pods = await self._own_pods(scaled)
        async with asyncio.TaskGroup() as group:
            for pod in pods:
                group.create_task(self._annotate(session, scaled, pod, turns), name=f"fill of {pod.name}")

    async def _own_pods(self, scaled: Scaled) -> list[ServingPod]:
        """Those of the resource's own Deployment whose annotation is nobody else's."""
        pods = [pod for pod in self.pods.engines(*scaled.key) if not pod.cost_by_others]
        of_each = {_owned_by(scaled, pod): pod for pod in pods}
        for owned, pod in of_each.items():
            if owned in self._owned or await belongs_to(
                self.api, scaled.key.namespace, pod, scaled.deployment_uid
            ):
                self._owned_now.add(owned)
        return [pod for pod in pods if _owned_by(scaled, pod) in self._owned_now]

    async def _annotate(
        self, session: aiohttp.ClientSession, scaled: Scaled, pod: ServingPod, turns: asyncio.Semaphore
    ) -> None:
        """Writes the annotation where it is another one; what fails is tried again in the next round."""
        try:
            async with turns:
                if scaled.key.namespace in self._refused_until:
                    return
                fill = fill_percent(await read_metrics(session, pod.address_at(scaled.engine_port), READ))
                if fill is None or (cost := deletion_cost(fill, pod.deletion_cost)) == pod.deletion_cost:
                    return
                annotations = {DELETION_COST: cost}
                await Writer(self.api).annotate_pod(scaled.key.namespace, pod.name, pod.uid, annotations)
        except ForbiddenError as error:
            self._refuse(scaled.key.namespace, error)
        except (aiohttp.ClientError, KvtierError, TimeoutError, ValueError, OSError) as error:
            _LOG.debug("%s: pod %s has no new cost: %s", scaled.key, pod.name, str(error)[:_MOST_CHARACTERS])
        except Exception as error:  # noqa: BLE001 - nothing that a pod answers may end the looks
            _LOG.error("%s: asking an engine: this is a bug in kvtier", scaled.key, exc_info=error)

    def _refuse(self, namespace: str, error: ForbiddenError) -> None:
        """Leaves a namespace alone for a while; said once, for an installation may do without the right."""
        self._refused_until[namespace] = _now() + self.timings.forbidden_s
        if not self._is_told:
            self._is_told = True
            _LOG.warning("engines that hold least do not go first: no pod may be annotated: %s", error)


def _owned_by(scaled: Scaled, pod: ServingPod) -> _Owned:
    return _Owned(pod.replica_set, pod.replica_set_uid, scaled.deployment_uid)


def _now() -> float:
    return asyncio.get_running_loop().time()
