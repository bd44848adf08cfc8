"""The pods that KVCacheTiers with spec.attach select: one watch for each such resource, and none without."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from kvtier_common.kubernetes.answers import Place
from kvtier_common.kubernetes.client import Api
from kvtier_common.kubernetes.reflector import Reflector
from kvtier_operator.reconcile.api_server import POD
from kvtier_operator.reconcile.cache.live_object import owner_of
from kvtier_operator.reconcile.cache.resources import Key
from kvtier_operator.reconcile.cache.watches import POLICY
from kvtier_operator.reconcile.facts.selected_pods import SelectedPod, selected_pod
from kvtier_operator.reconcile.observability import WATCH_RESTARTS

_MOST_PODS: Final = 4096
"""Kept of one resource; whoever may create pods may create them without end."""
_MOST_SAMPLED_BYTES: Final = 128 << 10
"""Of all samples of one resource."""
_MOST_KINDS: Final = 16
_SAMPLED: Final = ("name", "labels", "annotations")
_TEMPLATE_LABELS: Final = ("pod-template-hash", "controller-revision-hash")
"""Of Deployments, and of StatefulSets and DaemonSets."""


class _Origin(NamedTuple):
    """What a pod was made of, in the order in which samples are better."""

    created_at: str  # RFC 3339 in UTC, so that texts are in the order of times
    untouched: bool
    template: tuple[str, ...]  # its controller, and what that calls its template


def _origin(metadata: Mapping[str, Any], *, untouched: bool) -> _Origin:
    labels = metadata.get("labels") or {}
    owner = owner_of(metadata)[0] or metadata.get("uid", "")
    template = (str(untouched), owner, *(labels.get(name, "") for name in _TEMPLATE_LABELS))
    return _Origin(metadata.get("creationTimestamp", ""), untouched, template)


@dataclass(frozen=True, slots=True)
class _Sample:
    origin: _Origin
    document: bytes


@dataclass(slots=True)
class SelectedPods:
    """The pods of one resource, as its reflector's sink, and of each kind of them one whole.

    A sample is of the latest template, before all as its owner made it. The last stay when their pods go:
    their owners will make more like them.
    """

    changed: Callable[[], None]
    listed: bool = False  # whether all of them were seen once
    _by_name: dict[str, SelectedPod] = field(default_factory=dict)
    _pods_of: Counter[str] = field(default_factory=Counter)  # by their kind
    _samples: dict[str, _Sample] = field(default_factory=dict)
    _unsampled: set[str] = field(default_factory=set)

    @property
    def all(self) -> tuple[SelectedPod, ...]:
        """By name."""
        return tuple(self._by_name[name] for name in sorted(self._by_name))

    @property
    def names(self) -> Collection[str]:
        """Of all of them."""
        return self._by_name.keys()

    @property
    def samples(self) -> Mapping[str, Mapping[str, Any]]:
        """One pod of each kind: name, labels and annotations in `metadata`, and its spec."""
        return {kind: orjson.loads(self._samples[kind].document) for kind in sorted(self._samples)}

    @property
    def unsampled(self) -> Collection[str]:
        """Kinds of which there is none, for they are too many or too large."""
        return self._unsampled

    def upsert(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        pod, before = selected_pod(document), self._by_name.get(document["metadata"]["name"])
        leaves = "deletionTimestamp" in document["metadata"]
        if not leaves and before is None and len(self._by_name) >= _MOST_PODS:
            return
        sampled = False
        if not leaves or not self._by_name.keys() - {pod.name}:
            sampled = self._take_sample(
                pod.kind, document, _origin(document["metadata"], untouched=not pod.attached_to)
            )
        if leaves:
            self.delete(document)
            return
        self._by_name[pod.name] = pod
        if before is None or before.kind != pod.kind:
            self._count(before, -1)
            self._count(pod, 1)
            self._drop_samples()
        if sampled or before != pod:
            self.changed()

    def delete(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        if (gone := self._by_name.pop(document["metadata"]["name"], None)) is not None:
            self._count(gone, -1)
            self._drop_samples()
            self.changed()

    def replace(self, places: set[Place], version: int) -> None:
        """As reflector.Sink."""
        del version  # nobody else tells of these pods
        gone = self._by_name.keys() - {name for _, name in places}
        for name in gone:
            self._count(self._by_name.pop(name), -1)
        self._drop_samples()
        if gone or not self.listed:
            self.listed = True
            self.changed()

    def _take_sample(self, kind: str, document: Mapping[str, Any], origin: _Origin) -> bool:
        """Whether it is another one than before: pods of one template differ in nothing that counts here."""
        known = self._samples.get(kind)
        if known is not None and (origin.template == known.origin.template or origin < known.origin):
            return False
        metadata = {name: document["metadata"][name] for name in _SAMPLED if name in document["metadata"]}
        sample = orjson.dumps({"metadata": metadata, "spec": document["spec"]})
        others = [len(taken.document) for of, taken in self._samples.items() if of != kind]
        if len(others) >= _MOST_KINDS or sum(others) + len(sample) > _MOST_SAMPLED_BYTES:
            self._unsampled.add(kind)
            return False
        self._samples[kind] = _Sample(origin, sample)
        self._unsampled.discard(kind)
        return True

    def _count(self, pod: SelectedPod | None, by: int) -> None:
        if pod is not None:
            self._pods_of[pod.kind] += by
            if not self._pods_of[pod.kind]:
                del self._pods_of[pod.kind]

    def _drop_samples(self) -> None:
        """Those of kinds of which there are no pods any more, unless there are none at all."""
        if self._by_name:
            self._unsampled &= self._pods_of.keys()
            for kind in self._samples.keys() - self._pods_of.keys():
                del self._samples[kind]


@dataclass(slots=True)
class _Followed:
    selector: str
    pods: SelectedPods
    watch: asyncio.Task[None]


class SelectedPodWatches:
    """Starts and ends watches as resources select pods; `changed` is called with a resource's key."""

    def __init__(self, api: Api, changed: Callable[[Key], None]) -> None:
        self._api = api
        self._changed = changed
        self._followed: dict[Key, _Followed] = {}
        self._turns = asyncio.Semaphore(2)

    def follow(self, key: Key, labels: Mapping[str, str]) -> SelectedPods:
        """The pods of the resource's namespace with these labels; watched from the first call on."""
        selector = ",".join(f"{name}={labels[name]}" for name in sorted(labels))
        known = self._followed.get(key)
        if known is not None and known.selector == selector and not known.watch.done():
            return known.pods
        self.forget(key)
        pods = SelectedPods(lambda: self._changed(key))
        reflector = Reflector(
            *(self._api, f"Pod of {key}", POD.path(key.namespace), {"labelSelector": selector}, pods, POLICY),
            turns=self._turns,
            restarted=lambda _, cause: WATCH_RESTARTS.labels(POD.kind, cause).inc(),
        )
        watch = asyncio.create_task(reflector.run(), name=f"watch {reflector.name}")
        self._followed[key] = _Followed(selector, pods, watch)
        return pods

    def names_of(self, key: Key) -> Collection[str]:
        """The pods of a resource that are known by now, by name."""
        followed = self._followed.get(key)
        return followed.pods.names if followed else ()

    def forget(self, key: Key) -> None:
        """Ends a resource's watch, where there is one."""
        if (known := self._followed.pop(key, None)) is not None:
            known.watch.cancel()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Ends all watches at the end of the block."""
        try:
            yield
        finally:
            watches = [followed.watch for followed in self._followed.values()]
            for key in [*self._followed]:
                self.forget(key)
            await asyncio.gather(*watches, return_exceptions=True)
