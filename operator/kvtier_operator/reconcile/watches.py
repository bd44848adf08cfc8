"""The operator's own watches: children, pods, nodes and bounds; the KVCacheTiers are kopf's."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from kvtier_operator.errors import KvtierError
from kvtier_operator.planning.objects.names import MANAGED_BY, MANAGED_BY_LABEL
from kvtier_operator.reconcile.bounds import Bounds, BoundSink
from kvtier_operator.reconcile.children import Children, KindSink
from kvtier_operator.reconcile.client import Api
from kvtier_operator.reconcile.errors import ForbiddenError, NotFoundError
from kvtier_operator.reconcile.kinds import KINDS, NODE, POD, STORAGE_CLASS, Kind
from kvtier_operator.reconcile.metrics import WATCH_RESTARTS
from kvtier_operator.reconcile.nodes import Nodes
from kvtier_operator.reconcile.pods import Pods, PodSink
from kvtier_operator.reconcile.reflector import Reflector, Sink
from kvtier_operator.reconcile.routes import Routes, RouteSink

_LOG: Final = logging.getLogger(__name__)
_OURS: Final = f"{MANAGED_BY_LABEL}={MANAGED_BY}"
_ROUTE: Final = "HTTPRoute"
_ASK_AGAIN_S: Final = 10.0
"""How soon a CRD that was installed is noticed. Asked for, not watched: that takes no rights to CRDs."""
_ALLOWED_AGAIN_S: Final = 60.0
"""How soon a right that was given is noticed."""
NOT_INSTALLED: Final = "not installed"


@dataclass(slots=True)
class Watches:
    """All of them.

    Attributes:
        api: The API server.
        children: Takes the objects that kvtier made.
        routes: Takes HTTPRoutes, whoever made them.
        pods: Takes their pods.
        nodes: Takes the nodes.
        bounds: Takes what bounds the pods of namespaces.
        namespaces: Where to look; none for everywhere.
        kinds_changed: Called when the cluster begins or ceases to serve a kind.
    """

    api: Api
    children: Children
    routes: Routes
    pods: Pods
    nodes: Nodes
    bounds: Bounds
    namespaces: Sequence[str]
    kinds_changed: Callable[[], None]
    nodes_unseen: str = "they were not listed yet"
    _unserved: dict[str, str] = field(default_factory=dict)
    _reflectors: list[Reflector] = field(default_factory=list)
    _needed: list[Reflector] = field(default_factory=list)
    _asked: dict[str, asyncio.Event] = field(default_factory=dict)
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))

    def serves(self, kind: str) -> bool:
        """Whether the cluster knows a kind, and lets us see it."""
        return kind not in self._unserved

    def why_not(self, kind: str) -> str:
        """Why a kind is not served: NOT_INSTALLED, or what the server said."""
        return self._unserved.get(kind, "")

    def start(self, group: asyncio.TaskGroup) -> None:
        """Starts every watch as a task."""
        for kind in KINDS:
            self._asked[kind.kind] = asyncio.Event()
            if kind.optional:
                self._unserved[kind.kind] = NOT_INSTALLED
                group.create_task(self._while_served(kind), name=f"watch {kind.kind}")
            else:
                self._asked[kind.kind].set()
                reflectors = self._of_kind(kind)
                self._needed += reflectors
                for reflector in reflectors:
                    group.create_task(reflector.run(), name=f"watch {kind.kind}")
        for namespace in self._places():
            pods = self._reflector(POD, namespace, _OURS, PodSink(self.pods, namespace))
            self._needed.append(pods)
            group.create_task(pods.run(), name="watch Pod")
            for kind, sink in self.bounds.in_namespaces(namespace):
                self._start_allowed(group, kind, namespace, sink, _not_said)
        classes = BoundSink(self.bounds.storage_classes, None)
        self._start_allowed(group, STORAGE_CLASS, None, classes, _not_said)
        self._start_allowed(group, NODE, None, self.nodes, self._nodes_unseen)

    async def ready(self) -> None:
        """Waits until everything that is there has been seen once."""
        for asked in self._asked.values():
            await asked.wait()
        for reflector in [*self._reflectors]:
            await reflector.synced.wait()

    def stuck(self, now: float, longest_s: float) -> Iterator[str]:
        """Names of watches that did nothing for so long, by the loop's clock; they at least try again."""
        return (each.name for each in self._reflectors if now - each.alive_at > longest_s)

    def refused(self) -> Iterator[str]:
        """What may not be watched although nothing can be done without, and what the server said."""
        return (f"watching {each.name}: {each.trouble}" for each in self._needed if each.refused)

    def _start_allowed(
        self,
        group: asyncio.TaskGroup,
        kind: Kind,
        namespace: str | None,
        sink: Sink,
        unseen: Callable[[str], None],
    ) -> None:
        """Starts a watch that the operator can do without."""
        asked = self._asked[f"{kind.kind} {namespace}"] = asyncio.Event()
        watch = self._watch_allowed(kind, namespace, sink, unseen, asked)
        group.create_task(watch, name=f"watch {kind.kind}")

    async def _watch_allowed(
        self,
        kind: Kind,
        namespace: str | None,
        sink: Sink,
        unseen: Callable[[str], None],
        asked: asyncio.Event,
    ) -> None:
        """Watches what the operator may not be allowed to see, such as what belongs to no namespace.

        `unseen` is called with why it does not, and with nothing once everything was seen.
        """
        while True:
            try:
                await self.api.get(kind.path(namespace), {"limit": "1"})
            except ForbiddenError as error:
                unseen(f"the operator may not list {kind.plural}: {error}")
                wait_s = _ALLOWED_AGAIN_S
            except KvtierError as error:
                _LOG.warning("listing %s: %s; trying again", kind.plural, error)
                wait_s = _ASK_AGAIN_S
            else:
                break
            asked.set()
            await asyncio.sleep(wait_s)
        reflector = self._reflector(kind, namespace, "", sink)
        asked.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(reflector.run())
            await reflector.synced.wait()
            unseen("")

    def _nodes_unseen(self, why: str) -> None:
        self.nodes_unseen = why
        if not why:
            self.nodes.touch()

    async def _while_served(self, kind: Kind) -> None:
        """Watches a kind while there is a CRD for it, and asks for the CRD while there is none."""
        while True:
            why = await self._why_unserved(kind)
            if why:
                self._set(kind, why)
                await asyncio.sleep(_ASK_AGAIN_S)
                continue
            reflectors = self._of_kind(kind)
            try:
                async with asyncio.TaskGroup() as group:
                    for reflector in reflectors:
                        group.create_task(reflector.run())
                    for reflector in reflectors:
                        await reflector.synced.wait()
                    self._set(kind, "")
            except* NotFoundError:
                _LOG.warning("%s is no longer served", kind.crd)
            for reflector in reflectors:
                self._reflectors.remove(reflector)
            self._set(kind, NOT_INSTALLED)
            self.children.unserved(kind)
            if kind.kind == _ROUTE:
                self.routes.only(None, set())

    async def _why_unserved(self, kind: Kind) -> str:
        path = kind.path(next(iter(self._places())))
        try:
            await self.api.get(path, {"limit": "1"})
        except NotFoundError:
            return NOT_INSTALLED
        except KvtierError as error:
            return str(error)
        return ""

    def _set(self, kind: Kind, why: str) -> None:
        before = self._unserved.get(kind.kind, "")
        if why:
            self._unserved[kind.kind] = why
        else:
            self._unserved.pop(kind.kind, None)
        if why != before:
            _LOG.info("%s: %s", kind.crd, why or "served")
            self.kinds_changed()
        self._asked[kind.kind].set()

    def _of_kind(self, kind: Kind) -> list[Reflector]:
        return [self._in(namespace, kind) for namespace in self._places()]

    def _in(self, namespace: str | None, kind: Kind) -> Reflector:
        children = KindSink(self.children, kind, namespace)
        if kind.kind == _ROUTE:  # a route's requests may go to anybody's
            return self._reflector(kind, namespace, "", RouteSink(children, self.routes))
        return self._reflector(kind, namespace, _OURS, children)

    def _reflector(self, kind: Kind, namespace: str | None, selector: str, sink: Sink) -> Reflector:
        name = kind.kind if namespace is None else f"{kind.kind} in {namespace}"
        reflector = Reflector(
            self.api, name, kind.path(namespace), selector, sink, self._turns, _count_restart
        )
        self._reflectors.append(reflector)
        return reflector

    def _places(self) -> tuple[str | None, ...]:
        return tuple(self.namespaces) or (None,)


def _not_said(why: str) -> None:
    """What bounds a namespace and cannot be seen is not spoken of."""
    del why


def _count_restart(name: str, cause: str) -> None:
    WATCH_RESTARTS.labels(name.partition(" ")[0], cause).inc()
