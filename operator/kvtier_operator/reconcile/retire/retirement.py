"""Keeps the order in which engines go: asks them now and then how full they are, and annotates their pods."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import aiohttp

from kvtier_common.errors import KvtierError
from kvtier_common.kubernetes.client import Api
from kvtier_common.kubernetes.errors import ForbiddenError
from kvtier_common.metrics.answer import metrics_session, read_metrics
from kvtier_operator.reconcile.apply.writer import Writer
from kvtier_operator.reconcile.cache.pods import PodCache
from kvtier_operator.reconcile.cache.resources import Key
from kvtier_operator.reconcile.facts.pod import DELETION_COST, ServingPod
from kvtier_operator.reconcile.observe.pod_owner import belongs_to
from kvtier_operator.reconcile.retire.deletion_cost import READ, deletion_cost, fill_percent
from kvtier_operator.reconcile.settings.timings import RetireTimings

_LOG: Final = logging.getLogger(__name__)
_AT_A_TIME: Final = 8
_MOST_CHARACTERS: Final = 300
"""Characters of an engine's answer that a log line quotes."""


class Scaled(NamedTuple):
    """A resource whose engines an autoscaler scales, and which say how full they are.

    Attributes:
        key: The resource.
        deployment_uid: Of the engines' Deployment.
        engine_port: Port on which engines serve HTTP.
    """

    key: Key
    deployment_uid: str
    engine_port: int


@dataclass(slots=True)
class Retirement:
    """Annotates engines of autoscaled resources with what it costs to lose them.

    Kubernetes looks at it when a ReplicaSet gets smaller: pods that are not ready go before, and of two that
    cost the same the younger one.

    Attributes:
        api: Answers which Deployment owns a ReplicaSet.
        pods: Ready engines and the annotations that they have.
        scaled: The resources to look at.
        timings: How often.
        request_s: Longest time that an engine's answer may take.
    """

    api: Api
    pods: PodCache
    scaled: Callable[[], Iterator[Scaled]]
    timings: RetireTimings
    request_s: float
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_A_TIME))
    _refused: bool = False

    async def run(self) -> None:
        """Looks at all engines, again and again, until cancelled."""
        while True:
            async with metrics_session(self.request_s, "kvtier-operator") as session:
                for each in [*self.scaled()]:
                    await self._annotate_all(session, each)
                    if self._refused:
                        break
            await asyncio.sleep(self.timings.forbidden_s if self._refused else self.timings.round_s)
            self._refused = False

    async def _annotate_all(self, session: aiohttp.ClientSession, scaled: Scaled) -> None:
        try:
            pods = await self._own_pods(scaled)
        except KvtierError as error:
            _LOG.debug("%s: whose its pods are was not seen: %s", scaled.key, error)
            return
        async with asyncio.TaskGroup() as group:
            for pod in pods:
                group.create_task(self._annotate(session, scaled, pod), name=f"fill of {pod.name}")

    async def _own_pods(self, scaled: Scaled) -> list[ServingPod]:
        """Those of the resource's own Deployment; each ReplicaSet is asked for once."""
        found = self.pods.engines(*scaled.key)
        of_each = {(pod.replica_set, pod.replica_set_uid): pod for pod in found}
        ours = {
            named
            for named, pod in of_each.items()
            if await belongs_to(self.api, scaled.key.namespace, pod, scaled.deployment_uid)
        }
        return [pod for pod in found if (pod.replica_set, pod.replica_set_uid) in ours]

    async def _annotate(self, session: aiohttp.ClientSession, scaled: Scaled, pod: ServingPod) -> None:
        """Writes the annotation where it is another one; what fails is tried again in the next round."""
        try:
            async with self._turns:
                fill = fill_percent(await read_metrics(session, pod.address_at(scaled.engine_port), READ))
                if fill is None or (cost := deletion_cost(fill, pod.deletion_cost)) == pod.deletion_cost:
                    return
                annotations = {DELETION_COST: cost}
                await Writer(self.api).annotate_pod(scaled.key.namespace, pod.name, pod.uid, annotations)
        except ForbiddenError as error:
            if not self._refused:
                _LOG.warning("engines that hold least do not go first: no pod may be annotated: %s", error)
            self._refused = True
        except (aiohttp.ClientError, KvtierError, TimeoutError, ValueError, OSError) as error:
            _LOG.debug("%s: pod %s has no new cost: %s", scaled.key, pod.name, str(error)[:_MOST_CHARACTERS])
        except Exception as error:  # noqa: BLE001 - nothing that a pod answers may end the looks
            _LOG.error("%s: asking an engine: this is a bug in kvtier", scaled.key, exc_info=error)
