"""The operator's own watches: live objects, pods, nodes, storage classes; Kopf watches KVCacheTiers."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Final

from kvtier_common.errors import KvtierError
from kvtier_common.kubernetes.answers import ForbiddenError, NotFoundError
from kvtier_common.kubernetes.client import MOST_BYTES, Api
from kvtier_common.kubernetes.reflector import Reflector, ReflectorPolicy, Sink
from kvtier_operator.planning.base.names import MANAGED_BY, MANAGED_BY_LABEL
from kvtier_operator.reconcile.api_server import BY_NAME, KINDS, NODE, POD, STORAGE_CLASS, Kind
from kvtier_operator.reconcile.cache.live_objects import KindSink, LiveObjectCache, RouteCache
from kvtier_operator.reconcile.cache.pods import PodCache, PodSink
from kvtier_operator.reconcile.cache.surroundings import NodeCache, StorageClassCache
from kvtier_operator.reconcile.observability import WATCH_RESTARTS
from kvtier_operator.reconcile.settings import RETRY, WatchTimings

_LOG: Final = logging.getLogger(__name__)
_OURS: Final = f"{MANAGED_BY_LABEL}={MANAGED_BY}"
_ROUTE: Final = "HTTPRoute"
NOT_INSTALLED: Final = "not installed"
POLICY: Final = ReflectorPolicy(
    wait_s=RETRY.delay_s,
    relists=lambda error, _: isinstance(error, ForbiddenError),  # nobody knows for how long
    ends_on=(NotFoundError,),
    object_bytes=MOST_BYTES,
    leaves_out=False,
    meanwhile="trying again",
)
"""The same for all watches of the operator: one ends when its kind is no longer served."""


@dataclass(slots=True)
class Watches:
    """Starts a reflector for every kind in every namespace, and knows what cannot be watched.

    A scope is a namespace, or None for the whole cluster.
    """

    api: Api
    live_objects: LiveObjectCache  # takes the objects that carry kvtier's label
    routes: RouteCache  # takes HTTPRoutes, whoever made them
    pods: PodCache  # takes the pods of engines, pickers and gateways
    nodes: NodeCache
    storage_classes: StorageClassCache  # takes the storage classes
    namespaces: Sequence[str]  # namespaces to watch; none for the whole cluster
    until_readable: Callable[[str | None], Awaitable[None]]  # waits until KVCacheTiers of a scope can be read
    # called when a kind begins or ceases to be served, or to be one that may be listed
    kinds_changed: Callable[[], None]
    namespace_synced: Callable[[str | None], None]  # called when everything in a scope has been listed once
    timings: WatchTimings  # how soon new CRDs and new rights are noticed
    nodes_unknown: str = "they were not listed yet"  # why the nodes are not known; empty where they are
    _unserved: dict[str, dict[str | None, str]] = field(default_factory=dict)
    _reflectors: dict[str | None, list[Reflector]] = field(default_factory=lambda: defaultdict(list))
    _required: list[Reflector] = field(default_factory=list)
    _lost_watches: dict[str | None, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """By scope: required watches that were lost, and what the server said."""
    _first_answers: dict[str | None, list[asyncio.Event]] = field(default_factory=lambda: defaultdict(list))
    _readable: set[str | None] = field(default_factory=set)
    _synced: set[str | None] = field(default_factory=set)
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))

    def serves(self, kind: str) -> bool:
        """Whether the cluster serves a kind and the operator may list it."""
        return not BY_NAME[kind].optional or not self.why_not(kind)

    def why_not(self, kind: str) -> str:
        """Why a kind is not served: NOT_INSTALLED, or what the server said."""
        if not BY_NAME[kind].optional:
            return ""
        reasons = (self._unserved.get(kind) or {None: NOT_INSTALLED}).values()
        if NOT_INSTALLED in reasons:
            return NOT_INSTALLED
        return "" if "" in reasons else next(iter(reasons))

    def start(self, group: asyncio.TaskGroup) -> None:
        """Starts every watch as a task, those of a scope once it can be read."""
        classes = self.storage_classes
        self._start_optional(group, STORAGE_CLASS, None, classes, classes.set_access_problem)
        self._start_optional(group, NODE, None, self.nodes, self._set_nodes_unknown)
        for place in self._scopes():
            group.create_task(self._watch_scope(place), name=f"watches in {place or 'all namespaces'}")

    def has_synced(self, namespace: str) -> bool:
        """Whether everything in a namespace has been listed once."""
        return None in self._synced or namespace in self._synced

    def lost_watch(self, namespace: str) -> str:
        """A required watch of a namespace that was lost, and what the server said; empty where none was."""
        reasons = (*self._lost_watches[None].values(), *self._lost_watches.get(namespace, {}).values())
        return next(iter(reasons), "")

    def unsynced_scopes(self) -> Iterator[str]:
        """Scopes that can be read and have not been listed yet, one line each."""
        for place in self._scopes():
            if place in self._readable and place not in self._synced:
                yield "not everything was seen yet" + (f" in namespace {place}" if place is not None else "")

    async def _watch_scope(self, place: str | None) -> None:
        """Watches everything in a scope."""
        await self.until_readable(place)
        self._readable.add(place)
        async with asyncio.TaskGroup() as group:
            for kind in KINDS:
                if kind.optional:
                    asked = self._expect_answer(place)
                    group.create_task(self._watch_while_served(kind, place, asked), name=f"watch {kind.kind}")
                else:
                    self._start_required(group, place, self._of_kind(place, kind))
            pods = PodSink(self.pods, place)
            self._start_required(group, place, self._reflector(POD, place, _OURS, pods))
            await self._until_synced(place)

    async def _until_synced(self, place: str | None) -> None:
        for where in dict.fromkeys((None, place)):  # what belongs to no namespace as well
            for asked in self._first_answers[where]:
                await asked.wait()
            for reflector in [*self._reflectors[where]]:
                await reflector.synced.wait()
        self._synced.add(place)
        self.namespace_synced(place)

    def find_stuck(self, now: float, longest_s: float) -> Iterator[str]:
        """Names of watches that have done nothing for so long, not even try again, by the loop's clock."""
        return (
            reflector.name
            for reflector in chain(*self._reflectors.values())
            if now - reflector.alive_at > longest_s
        )

    def refusals(self) -> Iterator[str]:
        """Required watches that the operator has no rights to, and what the server said."""
        return (
            f"watching {reflector.name}: {reflector.trouble}"
            for reflector in self._required
            if reflector.refusal.is_set()
        )

    def _start_required(self, group: asyncio.TaskGroup, place: str | None, reflector: Reflector) -> None:
        self._required.append(reflector)
        group.create_task(reflector.run(), name=f"watch {reflector.name}")
        tell = partial(self._set_lost_watch, place, reflector.name)
        group.create_task(_report_refusals(reflector, tell), name=f"rights to {reflector.name}")

    def _set_lost_watch(self, place: str | None, name: str, why: str) -> None:
        if why:
            self._lost_watches[place][name] = f"watching {name}: {why}"
        else:
            self._lost_watches[place].pop(name, None)
        self.kinds_changed()

    def _expect_answer(self, place: str | None) -> asyncio.Event:
        asked = asyncio.Event()
        self._first_answers[place].append(asked)
        return asked

    def _start_optional(
        self,
        group: asyncio.TaskGroup,
        kind: Kind,
        namespace: str | None,
        sink: Sink,
        set_access_problem: Callable[[str], None],
    ) -> None:
        """Starts a watch that the operator can do without."""
        asked = self._expect_answer(namespace)
        watch = self._watch_optional(kind, namespace, sink, set_access_problem, asked)
        group.create_task(watch, name=f"watch {kind.kind}")

    async def _watch_optional(
        self,
        kind: Kind,
        namespace: str | None,
        sink: Sink,
        set_access_problem: Callable[[str], None],
        asked: asyncio.Event,
    ) -> None:
        """Watches what the operator may not be allowed to list, such as what belongs to no namespace.

        `set_access_problem` is called with why it may not, and with nothing once everything was listed.
        """
        while True:
            try:
                await self.api.get(kind.path(namespace), {"limit": "1"})
            except ForbiddenError as error:
                set_access_problem(f"the operator may not list {kind.plural}: {error}")
                wait_s = self.timings.new_right_s
            except KvtierError as error:
                _LOG.warning("listing %s: %s; trying again", kind.plural, error)
                wait_s = self.timings.new_crd_s
            else:
                break
            asked.set()
            await asyncio.sleep(wait_s)
        reflector = self._reflector(kind, namespace, "", sink)
        asked.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(reflector.run())
            while True:
                await reflector.synced.wait()
                set_access_problem("")
                await reflector.refusal.wait()
                set_access_problem(f"the operator may no longer list {kind.plural}: {reflector.trouble}")

    def _set_nodes_unknown(self, why: str) -> None:
        if why != self.nodes_unknown:
            self.nodes_unknown = why
            self.nodes.touch()

    async def _watch_while_served(self, kind: Kind, place: str | None, asked: asyncio.Event) -> None:
        """Watches a kind while there is a CRD for it, and asks for the CRD while there is none."""
        while True:
            why = await self._why_unserved(kind, place)
            if why:
                self._set(kind, place, why)
                asked.set()
                await asyncio.sleep(self.timings.new_crd_s)
                continue
            reflector = self._of_kind(place, kind)
            self._required.append(reflector)
            asked.set()
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(reflector.run())
                    await reflector.synced.wait()
                    self._set(kind, place, "")
                    await _report_refusals(reflector, partial(self._set, kind, place))
            except* NotFoundError:
                _LOG.warning("%s is no longer served", kind.crd)
            self._reflectors[place].remove(reflector)
            self._required.remove(reflector)
            self._set(kind, place, NOT_INSTALLED)
            self.live_objects.drop_kind(kind)
            if kind.kind == _ROUTE:
                self.routes.replace(None, set())

    async def _why_unserved(self, kind: Kind, place: str | None) -> str:
        try:
            await self.api.get(kind.path(place), {"limit": "1"})
        except NotFoundError:
            return NOT_INSTALLED
        except KvtierError as error:
            return str(error)
        return ""

    def _set(self, kind: Kind, place: str | None, why: str) -> None:
        before = self.why_not(kind.kind)
        self._unserved.setdefault(kind.kind, {})[place] = why
        if (now := self.why_not(kind.kind)) != before:
            _LOG.info("%s: %s", kind.crd, now or "served")
            self.kinds_changed()

    def _of_kind(self, namespace: str | None, kind: Kind) -> Reflector:
        routes = self.routes if kind.kind == _ROUTE else None  # a route's requests may go to anybody's
        sink = KindSink(self.live_objects, kind, namespace, routes)
        return self._reflector(kind, namespace, "" if kind.kind == _ROUTE else _OURS, sink)

    def _reflector(self, kind: Kind, namespace: str | None, selector: str, sink: Sink) -> Reflector:
        name = kind.kind if namespace is None else f"{kind.kind} in {namespace}"
        query = {"labelSelector": selector} if selector else {}
        path = kind.path(namespace)
        reflector = Reflector(self.api, name, path, query, sink, POLICY, self._turns, _count_restart)
        self._reflectors[namespace].append(reflector)
        return reflector

    def _scopes(self) -> tuple[str | None, ...]:
        return tuple(self.namespaces) or (None,)


async def _report_refusals(reflector: Reflector, tell: Callable[[str], None]) -> None:
    """Calls `tell` with what the server says when it refuses a watch, and with nothing once it accepts it."""
    while True:
        await reflector.refusal.wait()
        tell(reflector.trouble)
        await reflector.synced.wait()
        tell("")


def _count_restart(name: str, cause: str) -> None:
    WATCH_RESTARTS.labels(name.partition(" ")[0], cause).inc()
