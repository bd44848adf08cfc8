"""Keeps a local view of some objects: list, then watch from there, for ever."""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import orjson

from kvtier_operator.errors import KvtierError
from kvtier_operator.reconcile.api_server.answer import MOST_BYTES
from kvtier_operator.reconcile.api_server.client import Api, api_error
from kvtier_operator.reconcile.api_server.errors import (
    ExpiredError,
    ForbiddenError,
    NotFoundError,
    TooLargeError,
)
from kvtier_operator.reconcile.loop.work_queue import backoff_s

_LOG: Final = logging.getLogger(__name__)
_PAGE: Final = 50
"""Small: a page is parsed into ten times its bytes, and the peak of a restart stays resident."""
_PAGE_BYTES: Final = 4 << 20
"""Whoever may make objects with kvtier's label can make each of them 1.5 MB."""
_WATCH_S: Final = 290
"""The server ends a watch after this long; below the five minutes that load balancers allow."""
_LASTED_S: Final = 5.0
"""A watch that lived this long did work: the next one starts without waiting."""

Place = tuple[str, str]


class Sink(Protocol):
    """Who keeps what is seen; `place` is (namespace, name)."""

    def seen(self, document: dict[str, Any]) -> None:
        """An object is there, new or changed or as before."""

    def gone(self, document: dict[str, Any]) -> None:
        """An object was deleted, or no longer has the labels that were asked for."""

    def only(self, places: set[Place], version: int) -> None:
        """A list is complete: at its resource version there were these and no others."""


@dataclass(slots=True)
class Reflector:
    """One list+watch.

    Attributes:
        api: The API server.
        name: For logs and metrics.
        path: Path of the collection.
        selector: Label selector; empty for all.
        sink: Who keeps what is seen.
        turns: How many lists may be read at a time; the peak of a restart's memory.
        restarted: Called with the reason each time the watch has to start anew for trouble.
        synced: Set while the sink has a complete list, and the server lets it be kept up to date.
        alive_at: When something last came from the server, in seconds of the loop's clock.
        trouble: What the server said when it last failed; empty while it goes well.
        refusal: Set while that was for want of rights.
    """

    api: Api
    name: str
    path: str
    selector: str
    sink: Sink
    turns: asyncio.Semaphore
    restarted: Callable[[str, str], None]
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    alive_at: float = 0.0
    trouble: str = ""
    refusal: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Lists and watches until cancelled.

        Raises:
            NotFoundError: The whole kind is gone.
        """
        failures, version = 0, ""
        while True:
            started = self._touch()
            try:
                version = version or await self._list()
                async with aclosing(self.api.watch(self.path, self._query(version))) as lines:
                    async for line in lines:
                        version = self._take(line) or version
            except ExpiredError:
                version = ""
                self.restarted(self.name, "expired")
            except NotFoundError:
                raise
            except ForbiddenError as error:
                version = ""  # nobody knows for how long
                self._troubled(error)
                self.synced.clear()
                self.refusal.set()
            except KvtierError as error:
                self._troubled(error)
            if self._now() - started < _LASTED_S:
                failures += 1
                await asyncio.sleep(backoff_s(failures))
            else:
                failures = 0

    def _troubled(self, error: KvtierError) -> None:
        self.restarted(self.name, type(error).__name__.removesuffix("Error").lower())
        if self.trouble != str(error):
            _LOG.warning("watching %s: %s; trying again", self.name, error)
        self.trouble = str(error)

    async def _list(self) -> str:
        """Everything, page by page; returns the resource version to watch from."""
        places: set[Place] = set()
        query, limit = {"labelSelector": self.selector} if self.selector else {}, _PAGE
        while True:
            async with self.turns:
                try:
                    most = _PAGE_BYTES if limit > 1 else MOST_BYTES
                    body = await self.api.get(self.path, query | {"limit": str(limit)}, most_bytes=most)
                except TooLargeError:
                    if limit == 1:
                        raise
                    limit = max(1, limit // 4)
                    continue
                page, limit = orjson.loads(body), min(_PAGE, 2 * limit)
                self._touch()
                documents = page["items"] or []
                while documents:  # each is let go when it was seen
                    metadata = (document := documents.pop())["metadata"]
                    places.add((metadata.get("namespace", ""), metadata["name"]))
                    self.sink.seen(document)
            following = page["metadata"].get("continue")
            if not following:
                break
            query["continue"] = following
        version: str = page["metadata"]["resourceVersion"]
        self.sink.only(places, int(version))
        self.trouble = ""
        self.refusal.clear()
        self.synced.set()
        return version

    def _query(self, version: str) -> dict[str, str]:
        spread = random.randint(0, _WATCH_S // 10)  # noqa: S311 - spreads load, no secret
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(_WATCH_S - spread),
        }
        return query | ({"labelSelector": self.selector} if self.selector else {})

    def _take(self, line: bytes) -> str | None:
        """One line of a watch; returns the resource version that it brings."""
        self._touch()
        event = orjson.loads(line)
        document = event["object"]
        match event["type"]:
            case "ADDED" | "MODIFIED":
                self.sink.seen(document)
            case "DELETED":
                self.sink.gone(document)
            case "ERROR":
                raise api_error(document.get("code", 500), document, document.get("message", "watch failed"))
        self.trouble = ""
        version: str | None = document["metadata"].get("resourceVersion")
        return version

    def _touch(self) -> float:
        self.alive_at = self._now()
        return self.alive_at

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
