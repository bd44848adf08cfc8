"""Puts the parts together and runs them."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

import orjson

from kvtier_operator.reconcile.apply import Applier
from kvtier_operator.reconcile.bounds import Bounds
from kvtier_operator.reconcile.children import Children
from kvtier_operator.reconcile.client import Api
from kvtier_operator.reconcile.clock import Clock
from kvtier_operator.reconcile.dispatch import Dispatcher
from kvtier_operator.reconcile.engines import Engines
from kvtier_operator.reconcile.failed_rounds import FailedRounds
from kvtier_operator.reconcile.metrics import RESOURCES
from kvtier_operator.reconcile.nodes import Nodes
from kvtier_operator.reconcile.options import Options
from kvtier_operator.reconcile.pods import Pods
from kvtier_operator.reconcile.reconciler import Reconciler
from kvtier_operator.reconcile.routes import Routes
from kvtier_operator.reconcile.tiers import Key, Tiers, key_of
from kvtier_operator.reconcile.watches import Watches
from kvtier_operator.reconcile.writer import Writer

_LOG: Final = logging.getLogger(__name__)
_CONTENT_S: Final = 0.02
"""An edit of a child is repaired at once, but several edits together."""
_FACTS_S: Final = 0.3
"""Pods and Deployments report in bursts; a status is written once for a burst."""
_NODES_S: Final = 2.0
_STUCK_S: Final = 300.0
"""Longer than any request with its retries may take (client timeout 30 s, back-off 60 s)."""


class Controller:
    """The operator without kopf."""

    def __init__(self, api: Api, options: Options) -> None:
        self.tiers = Tiers()
        self._children = Children(self._child_changed)
        routes = Routes(self._route_changed)
        pods = Pods(self._pod_changed)
        nodes = Nodes(self._nodes_changed)
        bounds = Bounds(self._bounds_changed)
        self._watches = Watches(
            api, self._children, routes, pods, nodes, bounds, options.namespaces, self._kinds_changed
        )
        self._engines = Engines(pods, self._again)
        reconciler = Reconciler(
            api=api,
            tiers=self.tiers,
            children=self._children,
            applier=Applier(api, self._children),
            routes=routes,
            pods=pods,
            watches=self._watches,
            engines=self._engines,
            clock=Clock(),
            images=options.images,
        )
        failed_rounds = FailedRounds(Writer(api), self.tiers, reconciler.clock)
        self._dispatcher = Dispatcher(reconciler.reconcile, failed_rounds.tell)
        self._serving = False

    async def run(self) -> None:
        """Watches and reconciles until cancelled."""
        async with self._engines.open(), asyncio.TaskGroup() as group:
            self._watches.start(group)
            await self._watches.ready()
            _LOG.info("everything was seen once, %d objects of ours: reconciling", len(self._children))
            group.create_task(self._dispatcher.run(), name="dispatcher")
            self._serving = True

    def resource_event(self, type_: str | None, document: Mapping[str, Any]) -> None:
        """A KVCacheTier was listed (no type), ADDED, MODIFIED or DELETED."""
        if type_ == "DELETED":
            self.tiers.gone(key_of(document), document["metadata"]["uid"])
        elif key := self.tiers.seen(document):
            self._dispatcher.add(key)

    def troubles(self) -> list[str]:
        """What hangs; nothing for a healthy operator."""
        now = asyncio.get_running_loop().time()
        return [
            *self._dispatcher.stuck(now, _STUCK_S),
            *(f"the watch of {name}" for name in self._watches.stuck(now, _STUCK_S)),
        ]

    def unready(self) -> list[str]:
        """Why it does not serve what it should; nothing while it does, the API server down or not."""
        refused = [*self._watches.refused()]
        return refused or ([] if self._serving else ["not everything was seen yet"])

    def count_resources(self) -> None:
        """Sets the metric of resources by condition Ready; called when someone asks for it."""
        counts = {"True": 0, "False": 0, "Unknown": 0}
        for key in self.tiers:
            tier = self.tiers.get(key)
            conditions = orjson.loads(tier.status).get("conditions", ()) if tier else ()
            found = next((each["status"] for each in conditions if each["type"] == "Ready"), "Unknown")
            counts[found] += 1
        for ready, count in counts.items():
            RESOURCES.labels(ready).set(count)

    def _child_changed(self, namespace: str, name: str, content: bool) -> None:
        self._again(Key(namespace, name), _CONTENT_S if content else _FACTS_S)

    def _route_changed(self, namespace: str, name: str) -> None:
        self._again(Key(namespace, name), _FACTS_S)

    def _pod_changed(self, namespace: str, name: str) -> None:
        self._again(Key(namespace, name), _FACTS_S)

    def _nodes_changed(self) -> None:
        for key in self.tiers:
            self._again(key, _NODES_S)

    def _bounds_changed(self, namespace: str) -> None:
        for key in self.tiers:
            if namespace in ("", key.namespace):
                self._again(key, _NODES_S)

    def _kinds_changed(self) -> None:
        for key in self.tiers:
            self._again(key, 0)

    def _again(self, key: Key, delay_s: float) -> None:
        if self.tiers.get(key) is not None:
            self._dispatcher.add(key, delay_s)
