"""A running operator on a model of an API server, and everybody else who writes there."""

import asyncio
import contextlib
import copy
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import orjson
from tests.cases.kvcachetier import document
from tests.unit.operator.reconcile.model_cluster.api import Call, ModelApi, Stream
from tests.unit.operator.reconcile.model_cluster.event_loop import ModelLoop
from tests.unit.operator.reconcile.model_cluster.server import OURS, Document, Server, matches
from tests.unit.operator.reconcile.objects import VIEW

from kvtier_operator.reconcile.api_server import KVCACHETIER, Ref
from kvtier_operator.reconcile.cache.resources import Key, ResourceCache
from kvtier_operator.reconcile.facts.cached_plan import DesiredObject
from kvtier_operator.reconcile.loop.controller import Controller
from kvtier_operator.reconcile.loop.plan_resource import plan_resource
from kvtier_operator.reconcile.settings import Options, Timings

KEY: Final = Key("default", "qwen3-32b")
RESOURCE: Final = Ref(KVCACHETIER.kind, *KEY)


@cache
def _wanted(resource: bytes) -> tuple[DesiredObject, ...]:
    resources = ResourceCache(lambda _: None)
    resources.upsert(orjson.loads(resource))
    parsed = resources.get(KEY)
    assert parsed
    return tuple(each for each in plan_resource(KEY, parsed, VIEW)[1] if not each.kind.optional)


async def _readable(place: str | None) -> None:
    """Every namespace is."""
    del place


class Cluster:
    """One KVCacheTier, its operator, and a server whose answers and events come when they are let."""

    def __init__(self) -> None:
        self.loop = ModelLoop()
        self.server = Server()
        self._someones: set[str] = set()
        self.create_resource()
        self.start()

    def start(self) -> None:
        """An operator that remembers nothing; what the one before it sent may yet arrive."""
        self.api = ModelApi(self.server)
        self._controller = Controller(self.api, Options(), _readable, Timings())  # type: ignore[arg-type]  # stands in
        self._running = self.loop.create_task(self._controller.run())
        self._told = self.server.version
        if resource := self.server.objects.get(RESOURCE):
            self.loop.call_soon(self._controller.resource_event, None, copy.deepcopy(resource))
        self.loop.run_ready()

    @property
    def is_running(self) -> bool:
        """Whether the operator is alive."""
        return not self._running.done()

    def stop(self) -> list[Call]:
        """Kills it; returns the requests that were under way."""
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_ready()
        with contextlib.suppress(asyncio.CancelledError):
            self._running.result()
        return self.api.calls

    def close(self) -> None:
        """The end."""
        self.stop()
        self.loop.close()

    def replace(self, ref: Ref, document: Document) -> None:
        """Somebody deletes an object and makes their own of the same name."""
        self.server.delete(ref)
        self._someones.add(self.server.put(ref, document)["metadata"]["uid"])

    def someones(self) -> list[Ref]:
        """Where those still are; one that was made while kvtier made its own may be kvtier's by now."""
        live = self.server.objects
        return [
            ref
            for ref in self.live_objects()
            if live[ref]["metadata"]["uid"] in self._someones
            and "ownerReferences" not in live[ref]["metadata"]
        ]

    def create_resource(self) -> None:
        """Somebody makes the KVCacheTier."""
        made = document({"spec.replicas": 2, "metadata.namespace": KEY.namespace})
        self.server.put(RESOURCE, made)

    def tell_resource(self, most: int) -> None:
        """Kopf hands on what happened to the KVCacheTier."""
        for change in self.server.since(self._told):
            if not most:
                break
            self._told = change.version
            if change.ref == RESOURCE:
                type_ = (
                    "MODIFIED" if change.before and change.after else "ADDED" if change.after else "DELETED"
                )
                told = copy.deepcopy(change.after or change.before or {})
                self.loop.call_soon(self._controller.resource_event, type_, told)
                most -= 1
        self.loop.run_ready()

    def answer(self, call: Call, *, lost: bool = False) -> None:
        """The server's answer comes, or does not."""
        if call.outcome is None:
            call.arrive(self.server)
        self.api.calls.remove(call)
        call.end(None if lost else call.outcome)
        self.loop.run_ready()

    def say(self, stream: Stream, most: int) -> int:
        """A watch says the next few things."""
        said = stream.say(self.server, most)
        self.loop.run_ready()
        return said

    def say_all(self) -> int:
        """All watches say all."""
        said = sum(stream.say(self.server, len(self.server.changes)) for stream in self.api.streams)
        self.loop.run_ready()
        return said

    def collect_garbage(self) -> None:
        """What is owned, but by nobody who is there, goes; so does what only waited to."""
        uids = {
            manifest["metadata"]["uid"] for ref, manifest in self.server.objects.items() if ref == RESOURCE
        }
        for ref, manifest in [*self.server.objects.items()]:
            owners = {owner["uid"] for owner in manifest["metadata"].get("ownerReferences", ())}
            if (owners and not owners & uids) or "deletionTimestamp" in manifest["metadata"]:
                self.server.delete(ref)

    def prompt(self) -> None:
        """Everything arrives, is answered and is told of, until nothing is under way any more."""
        self.loop.run_ready()
        while True:
            before = self.server.version
            self.collect_garbage()
            self.tell_resource(most=len(self.server.changes))
            said = self.say_all()
            calls = [*self.api.calls]
            for call in calls:
                self.answer(call)
            if not said and not calls and self.server.version == before:
                return

    def calm(self, seconds: float) -> None:
        """Time in which nobody but the operator does anything, and nothing is late."""
        until_s = self.loop.time() + seconds
        self.prompt()
        while (wait_s := self.loop.next_timer_s()) is not None and self.loop.time() + wait_s <= until_s:
            self.loop.pass_time(wait_s)
            self.prompt()

    def wanted(self) -> tuple[DesiredObject, ...]:
        """The objects that there should be; those of kinds that are not served left out."""
        resource = self.server.objects[RESOURCE]
        # an object does not depend on the version, and planning takes long
        metadata = {**resource["metadata"], "resourceVersion": "1"}
        return _wanted(orjson.dumps({**resource, "metadata": metadata}))

    def live_objects(self) -> list[Ref]:
        """Everything of the kinds that kvtier makes."""
        return sorted(ref for ref in self.server.objects if ref != RESOURCE)

    def drifted(self) -> list[str]:
        """What an apply of everything would change, and what is too much."""
        wanted = {child.ref: child.body or {} for child in self.wanted()}
        live = self.server.objects
        wrong = [
            f"{ref}{difference}"
            for ref, body in wanted.items()
            for difference in differences(live.get(ref), self.server.applied(ref, body))
        ]
        return wrong + [
            f"{ref} is too much"
            for ref in self.live_objects()
            if ref not in wanted and matches(live[ref], OURS)
        ]


def differences(found: Any, expected: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    """Where two documents differ, for a reader."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for name in sorted({*found, *expected}):
            yield from differences(found.get(name), expected.get(name), f"{path}.{name}")
    elif found != expected:
        yield f"{path} is {found}, not {expected}"
