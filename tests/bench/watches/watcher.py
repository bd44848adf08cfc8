"""Watches every kind of a Plan's objects until so many were seen, and prints what that took. A program.

`python -m tests.bench.watches.watcher reflectors|kopf|kopf-pages|kopf-streams COUNT`
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

import kopf
from kubernetes.aio.client import Configuration

from kvtier_common.kubernetes.answers import Place
from kvtier_common.kubernetes.client import Api
from kvtier_common.kubernetes.connect import connection
from kvtier_common.kubernetes.reflector import Reflector
from kvtier_operator.planning.base.names import MANAGED_BY, MANAGED_BY_LABEL
from kvtier_operator.reconcile import handlers
from kvtier_operator.reconcile.api_server import KINDS, Kind
from kvtier_operator.reconcile.cache.watches import POLICY

_OURS: Final = f"{MANAGED_BY_LABEL}={MANAGED_BY}"
_PAGE: Final = {"kopf": 50, "kopf-pages": 10, "kopf-streams": 50}
"""Objects in a page: as many as our reflectors ask for, or as Kopf asks for of KVCacheTiers."""
_LONGEST_S: Final = 240


@dataclass(slots=True)
class Seen:
    """Objects as little of which is kept as can be: the same for both sides."""

    enough: int
    versions: dict[tuple[str, str, str], str] = field(default_factory=dict)
    complete: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, plural: str, document: dict[str, Any]) -> None:
        """An object is there."""
        metadata = document["metadata"]
        self.versions[plural, metadata.get("namespace", ""), metadata["name"]] = metadata["resourceVersion"]
        if len(self.versions) >= self.enough:
            self.complete.set()


@dataclass(frozen=True, slots=True)
class _KindSink:
    plural: str
    all_seen: Seen

    def upsert(self, document: dict[str, Any]) -> None:
        self.all_seen.add(self.plural, document)

    def delete(self, document: dict[str, Any]) -> None:
        pass

    def replace(self, places: set[Place], version: int) -> None:
        pass


def _served() -> Iterable[Kind]:
    return (kind for kind in KINDS if not kind.optional or kind.kind in ("HTTPRoute", "InferencePool"))


async def _by_reflectors(configuration: Configuration, seen: Seen) -> None:
    turns = asyncio.Semaphore(2)
    async with Api(configuration, "kvtier-bench") as api, asyncio.TaskGroup() as group:
        for kind in _served():
            sink, query = _KindSink(kind.plural, seen), {"labelSelector": _OURS}
            reflector = Reflector(api, kind.kind, kind.path(), query, sink, POLICY, turns, lambda *_: None)
            group.create_task(reflector.run())


async def _by_kopf(configuration: Configuration, seen: Seen, how: str) -> None:
    registry, settings = kopf.OperatorRegistry(), handlers.kopf_settings()
    settings.watching.chunk_size = _PAGE[how]
    settings.watching.initial_streaming = how == "kopf-streams"

    async def login(**_: object) -> kopf.ConnectionInfo:
        return await handlers.kopf_connection(configuration)

    async def handle(event: kopf.RawEvent, resource: kopf.Resource, **_: object) -> None:
        seen.add(resource.plural, dict(event["object"]))

    kopf.on.login(registry=registry)(login)
    for kind in _served():
        group, _, version = kind.api_version.rpartition("/")
        kopf.on.event(group, version, kind.plural, registry=registry)(handle)
        settings.watching.label_selectors[group, kind.plural] = _OURS
    await kopf.operator(registry=registry, settings=settings, standalone=True, clusterwide=True)


def _mib(what: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (kib,) = (line.split()[1] for line in lines if line.startswith(f"{what}:"))
    return int(kib) / 1024


async def _measure(how: str, count: int) -> NoReturn:
    configuration, seen = await connection(), Seen(count)
    started_s, cpu_s, before_mib = time.monotonic(), time.process_time(), _mib("VmRSS")
    watch = _by_reflectors(configuration, seen) if how == "reflectors" else _by_kopf(configuration, seen, how)
    running, complete = asyncio.create_task(watch), asyncio.create_task(seen.complete.wait())
    await asyncio.wait({running, complete}, timeout=_LONGEST_S, return_when=asyncio.FIRST_COMPLETED)
    if not complete.done():
        running.cancel()
        await running  # what ended it, if anything did
    figures = {
        "by": how,
        "before_mib": before_mib,
        "seen_s": time.monotonic() - started_s,
        "cpu_s": time.process_time() - cpu_s,
        "peak_mib": _mib("VmHWM"),
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()
    os._exit(0)  # Kopf's tasks do not end with their loop


if __name__ == "__main__":
    asyncio.run(_measure(sys.argv[1], int(sys.argv[2])))
