"""The pods that KVCacheTiers with spec.attach select: one watch for each such resource, and none without."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
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
_MOST_SAMPLE_BYTES: Final = 64 << 10
_SAMPLED: Final = ("labels", "annotations")
_TEMPLATE_LABELS: Final = ("pod-template-hash", "controller-revision-hash")
"""Of Deployments, and of StatefulSets and DaemonSets."""


class _Origin(NamedTuple):
    """What a pod was made of, in the order in which samples are better."""

    untouched: bool
    created_at: str  # RFC 3339 in UTC, so that texts are in the order of times
    template: tuple[str, ...]  # its controller, and what that calls its template


_NOBODY: Final = _Origin(untouched=False, created_at="", template=())


def _origin(metadata: Mapping[str, Any], *, untouched: bool) -> _Origin:
    labels = metadata.get("labels") or {}
    owner = owner_of(metadata)[0] or metadata.get("uid", "")
    template = (str(untouched), owner, *(labels.get(name, "") for name in _TEMPLATE_LABELS))
    return _Origin(untouched, metadata.get("creationTimestamp", ""), template)


@dataclass(slots=True)
class SelectedPods:
    """The pods of one resource, as its reflector's sink, and one of them whole.

    The sample is of the latest that are as their owner made them; one that was changed where there is none.
    It stays when its pod goes: its owner will make more like it.
    """

    changed: Callable[[], None]
    listed: bool = False  # whether all of them were seen once
    _by_name: dict[str, SelectedPod] = field(default_factory=dict)
    _sample: bytes = b""
    _sample_of: _Origin = _NOBODY

    @property
    def all(self) -> tuple[SelectedPod, ...]:
        """By name."""
        return tuple(self._by_name[name] for name in sorted(self._by_name))

    @property
    def sample(self) -> Mapping[str, Any] | None:
        """One pod: labels and annotations in `metadata`, and its spec; None before there was one."""
        sample: Mapping[str, Any] | None = orjson.loads(self._sample) if self._sample else None
        return sample

    def upsert(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        pod = selected_pod(document)
        sampled = self._take_sample(document, _origin(document["metadata"], untouched=not pod.attached_to))
        if "deletionTimestamp" in document["metadata"]:
            self.delete(document)
            return
        before = self._by_name.get(pod.name)
        if before is None and len(self._by_name) >= _MOST_PODS:
            return
        self._by_name[pod.name] = pod
        if sampled or before != pod:
            self.changed()

    def delete(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        if self._by_name.pop(document["metadata"]["name"], None) is not None:
            self.changed()

    def replace(self, places: set[Place], version: int) -> None:
        """As reflector.Sink."""
        del version  # nobody else tells of these pods
        gone = self._by_name.keys() - {name for _, name in places}
        for name in gone:
            del self._by_name[name]
        if gone or not self.listed:
            self.listed = True
            self.changed()

    def _take_sample(self, document: Mapping[str, Any], origin: _Origin) -> bool:
        """Whether it is another one than before: pods of one template differ in nothing that counts here."""
        if origin.template == self._sample_of.template or origin < self._sample_of:
            return False
        metadata = {name: document["metadata"][name] for name in _SAMPLED if name in document["metadata"]}
        sample = orjson.dumps({"metadata": metadata, "spec": document["spec"]})
        if len(sample) > _MOST_SAMPLE_BYTES:
            return False
        self._sample, self._sample_of = sample, origin
        return True


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
