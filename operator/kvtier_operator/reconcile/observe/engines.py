"""Asks running engines in the background what their tiers hold, and whose a pod is."""

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

import aiohttp

from kvtier_common.errors import KvtierError, TooLargeError
from kvtier_common.kubernetes.answers import NotFoundError, as_object, parse_document
from kvtier_common.kubernetes.client import METADATA_ONLY, Api
from kvtier_common.metrics import prefixes
from kvtier_common.metrics.answer import NoMetricsError
from kvtier_common.metrics.text import Families, Sample, read_labels
from kvtier_common.metrics.tier_metrics import (
    CAPACITY_BYTES,
    CAPACITY_TOKENS,
    DEVICE,
    DEVICE_BLOCK,
    DEVICE_BLOCKS,
    DEVICE_TOKENS,
    OFFLOADED,
    OFFLOADED_TOKENS,
)
from kvtier_common.one_line import one_line
from kvtier_common.tier import Tier
from kvtier_operator.planning.observed import EngineFindings, EngineTokens, PrefixFindings, TierFindings
from kvtier_operator.planning.tiers import traits_of_tier
from kvtier_operator.planning.tiers.capacity import why_not_believed
from kvtier_operator.planning.units import size
from kvtier_operator.reconcile.api_server import REPLICA_SET
from kvtier_operator.reconcile.cache.live_object import LiveObject, owner_of
from kvtier_operator.reconcile.cache.pods import PodCache, ServingPod
from kvtier_operator.reconcile.cache.resources import CachedResource, Key
from kvtier_operator.reconcile.facts.cached_plan import CachedPlan, EngineObservation, merge_observations
from kvtier_operator.reconcile.observe.engine_session import EngineSession
from kvtier_operator.reconcile.settings import EngineTimings

_TOO_MANY: Final = 1 << 63
"""The status's fields are of 64 bits."""
_PREFIX: Final = "prefix"
READ: Final = (
    *(DEVICE, OFFLOADED, *CAPACITY_TOKENS.values()),
    *(name.encode() for name in (prefixes.TOKENS, prefixes.CACHED_TOKENS)),
    *(name.encode() for tier in Tier for name in traits_of_tier(tier).findings_metrics),
)
"""Names of the samples of which something is read."""
_METADATA_BYTES: Final = 1 << 20
"""Of a ReplicaSet's metadata: four times what all its annotations may have."""
_LOG: Final = logging.getLogger(__name__)
_MOST_CHARACTERS: Final = 300
"""Characters of an engine's answer that a log line or a condition quotes."""


def read_tiers(families: Families) -> tuple[EngineTokens, EngineFindings]:
    """What one engine pod's /metrics say; its data-parallel engines are added up."""
    if families.unreadable:
        names = ", ".join(sorted(name.decode() for name in families.unreadable))
        raise ValueError(f"{names}: no number of bytes or tokens")
    return _tokens(families), _findings(families)


def _tokens(families: Families) -> EngineTokens:
    device = _labels(families.of(DEVICE))
    first = device[0] if device else {}
    in_blocks = math.prod(_numbers(first.get(name) for name in DEVICE_BLOCKS) or (0,))
    by_tier = {Tier.GPU: _sum(labels.get(DEVICE_TOKENS) for labels in device) or in_blocks}
    by_tier |= _of_tiers(families, CAPACITY_TOKENS)
    if not families.of(CAPACITY_TOKENS[Tier.CPU]):
        by_tier[Tier.CPU] = _sum(labels.get(OFFLOADED_TOKENS) for labels in _labels(families.of(OFFLOADED)))
    return EngineTokens(
        {tier: tokens for tier, tokens in by_tier.items() if tokens and not _is_growing(families, tier)},
        block=next(iter(_numbers(labels.get(DEVICE_BLOCK) for labels in device)), None),
        gpu_blocks=next(iter(_numbers([first.get(DEVICE_BLOCKS[0])])), None),
    )


def read_prefixes(families: Families, names: Iterable[str]) -> Mapping[str, PrefixFindings]:
    """What one engine pod says of its resource's prefixes; a ValueError where it is no number of tokens."""
    tokens, cached = (_by_prefix(families, name) for name in (prefixes.TOKENS, prefixes.CACHED_TOKENS))
    return {name: PrefixFindings(tokens[name], cached.get(name)) for name in names if name in tokens}


def _by_prefix(families: Families, name: str) -> dict[str, int]:
    return {
        read_labels(labels).get(_PREFIX, ""): _countable(name.encode(), value)
        for labels, value in families.of(name.encode())
    }


def read_capacities(families: Families) -> Mapping[Tier, int]:
    """Bytes of the tiers of one engine pod, of those that have grown; a ValueError where it is no number."""
    sizes = _of_tiers(families, CAPACITY_BYTES)
    return {tier: size for tier, size in sizes.items() if size and not _is_growing(families, tier)}


def _of_tiers(families: Families, names: Mapping[Tier, bytes]) -> dict[Tier, int]:
    """A gauge of each tier."""
    return {tier: (_most if tier.shared else _total)(families, name) for tier, name in names.items()}


def _findings(families: Families) -> EngineFindings:
    findings = {
        tier: TierFindings(
            None if _is_growing(families, tier) else _gauge(families, traits_of_tier(tier).pinned_bytes),
            None if (pays := _gauge(families, traits_of_tier(tier).pays)) is None else pays > 0,
        )
        for tier in Tier
    }
    return {tier: of_tier for tier, of_tier in findings.items() if of_tier != TierFindings()}


def _is_growing(families: Families, tier: Tier) -> bool:
    growing = traits_of_tier(tier).growing
    return growing is not None and families.total(growing.encode()) > 0


def _gauge(families: Families, name: str | None) -> int | None:
    return _total(families, name.encode()) if name and families.of(name.encode()) else None


def _total(families: Families, name: bytes) -> int:
    """A gauge of all engines; a ValueError where it is not a number that a status can have."""
    return _countable(name, families.total(name))


def _most(families: Families, name: bytes) -> int:
    """The same of what engines share, which each of them tells whole."""
    return _countable(name, max((value for _, value in families.of(name)), default=0.0))


def _countable(name: bytes, total: float) -> int:
    if total >= _TOO_MANY:
        raise ValueError(f"{name.decode()}: {total} is no number of bytes or tokens")
    return int(total)


def _labels(samples: Iterable[Sample]) -> list[Mapping[str, str]]:
    return [read_labels(labels) for labels, _ in samples]


def _sum(values: Iterable[str | None]) -> int:
    return sum(_numbers(values))


def _numbers(values: Iterable[str | None]) -> list[int]:
    """All of them, or none where one is not known."""
    texts = [value or "" for value in values]
    return [int(text) for text in texts] if all(map(_is_number, texts)) else []


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20 and int(text) < _TOO_MANY  # noqa: PLR2004


async def belongs_to(api: Api, namespace: str, pod: ServingPod, deployment_uid: str) -> bool:
    """Whether the ReplicaSet that a pod names as its controller exists and belongs to the Deployment."""
    try:
        path = REPLICA_SET.path(namespace, pod.replica_set)
        answer = await api.get(path, accept=METADATA_ONLY, most_bytes=_METADATA_BYTES)
    except (NotFoundError, TooLargeError):
        return False
    metadata = as_object(parse_document(answer).get("metadata"))
    return (metadata.get("uid"), owner_of(metadata)[0]) == (pod.replica_set_uid, deployment_uid)


class _ImplausibleReportError(ValueError):
    """A pod reported sizes that no engine of the plan can have."""

    def __init__(self, pod: str, why: str) -> None:
        super().__init__(f"what pod {pod} says of its tiers is not taken: {one_line(why, _MOST_CHARACTERS)}")


class EngineObserver:
    """Asks one ready engine of each resource for its tiers, once the rollout is complete.

    While no engine answers with sizes, the plan's own figures stay in force, and engines are asked again,
    less and less often. Only pods of the resource's own Deployment are asked, and sizes that no plan can
    justify are not believed.
    """

    def __init__(
        self, api: Api, pods: PodCache, reconcile_in: Callable[[Key, float], None], timings: EngineTimings
    ) -> None:
        self._api = api
        self._pods = pods
        self._reconcile_in = reconcile_in
        self._timings = timings
        self._session = EngineSession(timings.request_s)
        self._asking: dict[Key, asyncio.Task[None]] = {}

    def open(self) -> AbstractAsyncContextManager[None]:
        """Lets engines be asked until the end of the block."""
        return self._session.open()

    def observe_in_background(
        self, key: Key, resource: CachedResource, plan: CachedPlan, engine: LiveObject | None
    ) -> None:
        """Starts to ask in the background, if an engine may report something new; returns at once."""
        state = resource.state
        if state.engine_hash != plan.engine_hash:
            state.engine_hash, state.rejected_report = plan.engine_hash, ""
            state.failed_observations, state.next_observation_at = 0, 0.0
        elif (
            state.observation
            and state.observation.engine_hash == plan.engine_hash
            and state.observation.complete
            and not state.observation.may_change
        ):
            return
        facts = engine.facts if engine is not None else None
        complete = facts is not None and facts.complete and not plan.rejected
        pods = self._pods.serving(*key)
        if not complete or engine is None or not pods or key in self._asking:
            return
        wait_s = state.next_observation_at - _now()
        if wait_s > 0:
            # the queue keeps one time a key: this reconciliation may have replaced the one that was due then
            self._reconcile_in(key, wait_s)
            return
        task = self._session.start(self._ask(key, resource, plan, pods, engine.uid), f"engine of {key}")
        self._asking[key] = task
        task.add_done_callback(lambda _: self._asking.pop(key, None))

    async def _ask(
        self,
        key: Key,
        resource: CachedResource,
        plan: CachedPlan,
        pods: Sequence[ServingPod],
        deployment_uid: str,
    ) -> None:
        state = resource.state
        try:
            async with self._session.turns:
                observation = await self._observation(key, plan, pods, deployment_uid)
        except _ImplausibleReportError as error:
            if state.rejected_report != str(error):
                _LOG.warning("%s: %s", key, error)
                state.rejected_report = str(error)
                self._reconcile_in(key, 0.0)
        except (aiohttp.ClientError, KvtierError, TimeoutError, ValueError, OSError) as error:
            _LOG.debug("%s: no engine was asked for its tiers: %s", key, str(error)[:_MOST_CHARACTERS])
        except Exception as error:  # noqa: BLE001 - nothing that a pod answers may end the looks
            _LOG.error("%s: asking an engine: this is a bug in kvtier", key, exc_info=error)
        else:
            observation = merge_observations(state.observation, observation)
            if observation != state.observation or state.rejected_report:
                state.observation, state.rejected_report = observation, ""
                self._reconcile_in(key, 0.0)
            if observation.complete:
                if observation.may_change:
                    self._ask_in(self._timings.again_s, key, resource)
                return
        state.failed_observations += 1
        self._ask_in(self._timings.retry.delay_s(state.failed_observations), key, resource)

    def _ask_in(self, wait_s: float, key: Key, resource: CachedResource) -> None:
        resource.state.next_observation_at = _now() + wait_s
        self._reconcile_in(key, wait_s)

    async def _observation(
        self, key: Key, plan: CachedPlan, pods: Sequence[ServingPod], deployment_uid: str
    ) -> EngineObservation:
        """The report of one engine; a ValueError where no pod is the Deployment's, or no engine so large."""
        for pod in pods:
            if not await belongs_to(self._api, key.namespace, pod, deployment_uid):
                continue
            try:
                address = pod.address_at(plan.engine_port)
                families = await self._session.read(address, READ)
                report = read_tiers(families)
                told = read_prefixes(families, plan.prefixes)
            except NoMetricsError:
                raise  # an answer without metrics is no report
            except ValueError as error:
                raise _ImplausibleReportError(pod.name, str(error)) from error
            wrong = [why_not_believed(report[0], plan.most_tokens)]
            if (
                pinned := sum(findings.pinned_bytes or 0 for findings in report[1].values())
            ) > plan.most_pinned_bytes:
                wrong.append(f"{size(pinned)} locked in memory, {size(plan.most_pinned_bytes)} at most")
            if why := ", ".join(filter(None, wrong)):
                raise _ImplausibleReportError(pod.name, why)
            lacking = len(told) < len(plan.prefixes)
            return EngineObservation(plan.engine_hash, *report, prefixes=told, lacks_prefixes=lacking)
        raise ValueError("no pod that is ready belongs to the Deployment")


def _now() -> float:
    return asyncio.get_running_loop().time()
