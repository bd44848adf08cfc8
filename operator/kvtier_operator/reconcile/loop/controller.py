"""Puts the parts of the operator together and has resources reconciled when something changes."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

from kvtier_common.kubernetes.client import Api
from kvtier_operator.planning.base.names import Component
from kvtier_operator.reconcile.api_server import Ref
from kvtier_operator.reconcile.apply.apply import Applier, OwnershipLookup
from kvtier_operator.reconcile.apply.writer import Writer
from kvtier_operator.reconcile.cache.attach_selectors import AttachSelectors
from kvtier_operator.reconcile.cache.live_objects import LiveObjectCache, RouteCache
from kvtier_operator.reconcile.cache.pods import PodCache
from kvtier_operator.reconcile.cache.resources import UNKNOWN, Key, ResourceCache, key_of
from kvtier_operator.reconcile.cache.selected_pods import SelectedPodWatches
from kvtier_operator.reconcile.cache.surroundings import NodeCache, StorageClassCache
from kvtier_operator.reconcile.cache.watches import Watches
from kvtier_operator.reconcile.loop.attachment import Attachments
from kvtier_operator.reconcile.loop.clock import Clock
from kvtier_operator.reconcile.loop.dispatch import Dispatcher
from kvtier_operator.reconcile.loop.reconciler import FailureReporter, Reconciler
from kvtier_operator.reconcile.observability import RESOURCES
from kvtier_operator.reconcile.observe.attached_engines import AttachedEngineObserver
from kvtier_operator.reconcile.observe.attachment import AttachmentLookup
from kvtier_operator.reconcile.observe.engines import EngineObserver
from kvtier_operator.reconcile.observe.huggingface import HubClient
from kvtier_operator.reconcile.observe.model_config_lookup import ModelConfigLookup
from kvtier_operator.reconcile.retire import Retirement, Scaled
from kvtier_operator.reconcile.settings import Options, Timings

_LOG: Final = logging.getLogger(__name__)


class Controller:
    """The operator without Kopf: its caches, its watches, its reconciler and its queue."""

    def __init__(
        self,
        api: Api,
        options: Options,
        until_readable: Callable[[str | None], Awaitable[None]],
        timings: Timings,
    ) -> None:
        self._timings = timings.reconcile
        self.resources = ResourceCache(lambda key: self._reconcile_in(key, 0))
        self._live_objects = LiveObjectCache(self._on_object_changed)
        routes = RouteCache(self._on_report_changed)
        pods = PodCache(self._on_report_changed)
        nodes = NodeCache(self._on_surroundings_changed)
        storage_classes = StorageClassCache(self._on_surroundings_changed)
        self._watches = Watches(
            api=api,
            live_objects=self._live_objects,
            routes=routes,
            pods=pods,
            nodes=nodes,
            storage_classes=storage_classes,
            namespaces=options.namespaces,
            until_readable=until_readable,
            kinds_changed=self._on_kinds_changed,
            namespace_synced=self._on_namespace_synced,
            timings=timings.watches,
        )
        self._engines = EngineObserver(api, pods, self._reconcile_in, timings.engines)
        clock = Clock()
        self._selectors = AttachSelectors()
        self._attachments = Attachments(
            SelectedPodWatches(api, self._on_selected_pods_changed),
            self._selectors,
            AttachedEngineObserver(self._reconcile_in, timings.engines),
            AttachmentLookup(api),
            self._watches,
            clock,
            self._reconcile_in,
        )
        reconciler = Reconciler(
            api=api,
            resources=self.resources,
            live_objects=self._live_objects,
            applier=Applier(Writer(api), self._live_objects, OwnershipLookup(api, timings.ownership)),
            routes=routes,
            pods=pods,
            watches=self._watches,
            models=ModelConfigLookup(api, HubClient() if options.asks_hub else None),
            engines=self._engines,
            clock=clock,
            images=options.images,
            policy=options.policy,
            attachments=self._attachments,
        )
        self._retirement = Retirement(
            api, pods, self._scaled_by_fill, timings.retire, timings.engines.request_s
        )
        failure_reporter = FailureReporter(Writer(api), self.resources, clock)
        self._dispatcher = Dispatcher(reconciler.reconcile, failure_reporter.report)

    async def run(self) -> None:
        """Watches and reconciles until cancelled."""
        async with self._engines.open(), self._attachments.open(), asyncio.TaskGroup() as group:
            self._watches.start(group)
            group.create_task(self._dispatcher.run(), name="dispatcher")
            group.create_task(self._retirement.run(), name="retirement")

    def resource_event(self, type_: str | None, document: Mapping[str, Any]) -> None:
        """A KVCacheTier was listed (no type), ADDED, MODIFIED or DELETED."""
        key = key_of(document)
        if type_ == "DELETED":
            self.resources.delete(key, document["metadata"]["uid"])
            self._attachments.forget(key)
            affected = self._selectors.delete(key)
        else:
            affected = self._selectors.upsert(key, document)
            self.resources.upsert(document)
        for rival in affected:
            self._reconcile_in(rival, 0)

    def troubles(self) -> list[str]:
        """What makes no progress; nothing for a healthy operator."""
        now = asyncio.get_running_loop().time()
        return [
            *self._dispatcher.find_stuck(now, self._timings.stuck_s),
            *(f"the watch of {name}" for name in self._watches.find_stuck(now, self._timings.stuck_s)),
        ]

    def unready(self) -> list[str]:
        """Why it does not serve what it should; nothing while it does, even if the API server is down."""
        return [*self._watches.refusals()] or [*self._watches.unsynced_scopes()]

    def count_resources(self) -> None:
        """Sets the metric of resources by condition Ready; called when someone asks for it."""
        counts = Counter(resource.ready for key in self.resources if (resource := self.resources.get(key)))
        for ready in ("True", "False", UNKNOWN):
            RESOURCES.labels(ready).set(counts[ready])

    def _scaled_by_fill(self) -> Iterator[Scaled]:
        """Resources with an autoscaler, whose engines say how full they are."""
        for key in self.resources:
            resource = self.resources.get(key)
            plan = resource.state.cached_plan if resource else None
            if resource is None or plan is None or plan.scaling is None or not plan.scaling.tells_fill:
                continue
            name = f"{key.name}-{Component.ENGINE.value}"
            engine = self._live_objects.get(Ref("Deployment", key.namespace, name))
            if engine is not None and engine.owner_uid == resource.uid:
                yield Scaled(key, engine.uid, plan.engine_port)

    def _on_object_changed(self, namespace: str, name: str, manifest: bool) -> None:
        self._reconcile_in(
            Key(namespace, name), self._timings.manifest_s if manifest else self._timings.report_s
        )

    def _on_report_changed(self, namespace: str, name: str) -> None:
        self._reconcile_in(Key(namespace, name), self._timings.report_s)

    def _on_selected_pods_changed(self, key: Key) -> None:
        for concerned in (key, *self._selectors.rival_keys(key)):
            self._reconcile_in(concerned, self._timings.report_s)

    def _on_surroundings_changed(self) -> None:
        self._reconcile_all(None, self._timings.surroundings_s)

    def _on_kinds_changed(self) -> None:
        self._reconcile_all(None, 0)

    def _on_namespace_synced(self, namespace: str | None) -> None:
        _LOG.info(
            "everything was seen once%s, %d objects of ours by now: reconciling",
            f" in namespace {namespace}" if namespace is not None else "",
            len(self._live_objects),
        )
        self._reconcile_all(namespace, 0)

    def _reconcile_all(self, namespace: str | None, delay_s: float) -> None:
        """All of a namespace, or of the cluster where None."""
        for key in self.resources:
            if namespace in (None, key.namespace):
                self._dispatcher.add(key, delay_s)

    def _reconcile_in(self, key: Key, delay_s: float) -> None:
        if self.resources.get(key) is not None:
            self._dispatcher.add(key, delay_s)
