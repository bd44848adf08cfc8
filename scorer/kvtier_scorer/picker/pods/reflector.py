"""Keeps up with a collection of objects: list, then watch from there, for ever."""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kvtier_scorer.picker.pods.api_server import ApiServer, ApiServerError, ExpiredError, parsed, status_error

_LOG: Final = logging.getLogger(__name__)
_PAGE: Final = 500
_WATCH_S: Final = 290
"""The server ends a watch after this long; below the five minutes that load balancers allow."""
_LASTED_S: Final = 5.0
"""A watch that lived this long did work: the next one starts without waiting."""
_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 15.0
_DOUBLINGS: Final = 16
_LIST_AFTER: Final = 5
"""Failures in a row from which the resource version itself is in doubt."""

Document = Mapping[str, Any]


class ObjectSink(Protocol):
    """Who keeps what is seen."""

    def seen(self, document: Document) -> None:
        """An object is there, new or changed or as before."""

    def gone(self, document: Document) -> None:
        """An object was deleted, or is no longer one of those that were asked for."""

    def only(self, names: frozenset[str]) -> None:
        """A list is complete: there are these and no others."""


@dataclass(slots=True)
class Reflector:
    """One list+watch.

    Nothing is gone unless the server says so: not while it cannot be reached, and not between two lists.

    Attributes:
        api: The API server.
        path: Path of the collection.
        query: Which of its objects.
        sink: Who keeps them.
        wait_s: Seconds to wait after so many failures in a row.
    """

    api: ApiServer
    path: str
    query: Mapping[str, str]
    sink: ObjectSink
    wait_s: Callable[[int], float]
    _trouble: str = ""

    async def run(self) -> None:
        """Lists and watches until cancelled."""
        failures, version = 0, ""
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            failed = False
            try:
                version = version or await self._list()
                self._better()
                async for line in self.api.watch(self.path, self._watch_query(version)):
                    version = self._take(parsed(line)) or version
            except ExpiredError:
                version = ""
            except ApiServerError as error:
                failed = True
                self._worse(str(error))
            if failed or loop.time() - started < _LASTED_S:
                failures += 1
                if failures >= _LIST_AFTER:
                    version = ""
                await asyncio.sleep(self.wait_s(failures))
            else:
                failures = 0

    async def _list(self) -> str:
        """Everything, page by page; returns the resource version to watch from."""
        names: set[str] = set()
        query = {**self.query, "limit": str(_PAGE)}
        while True:
            page = await self.api.get(self.path, query)
            metadata = _object(page.get("metadata"))
            for item in _items(page):
                document = _object(item)
                names.add(name_of(document))
                self.sink.seen(document)
            if not metadata.get("continue"):
                break
            query["continue"] = str(metadata["continue"])
        self.sink.only(frozenset(names))
        return str(metadata.get("resourceVersion") or "")

    def _watch_query(self, version: str) -> dict[str, str]:
        spread = random.randint(0, _WATCH_S // 10)  # noqa: S311 - spreads load, no secret
        return {
            **self.query,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(_WATCH_S - spread),
        }

    def _take(self, event: Document) -> str:
        """One line of a watch; returns the resource version that it brings, empty without one."""
        document = _object(event.get("object"))
        match event.get("type"):
            case "ADDED" | "MODIFIED":
                self.sink.seen(document)
            case "DELETED":
                self.sink.gone(document)
            case "ERROR":
                raise status_error(self.path, document)
        return str(_object(document.get("metadata")).get("resourceVersion") or "")

    def _worse(self, trouble: str) -> None:
        """One line when a trouble begins or becomes another."""
        if self._trouble != trouble:
            _LOG.warning("%s; the pods stay as they were, trying again", trouble)
        self._trouble = trouble

    def _better(self) -> None:
        if self._trouble:
            _LOG.info("%s: can be watched again", self.path)
        self._trouble = ""


def name_of(document: Document) -> str:
    """An object's name.

    Raises:
        ApiServerError: It has none.
    """
    name = _object(document.get("metadata")).get("name")
    if not isinstance(name, str) or not name:
        raise ApiServerError("the API server sends an object without a name")
    return name


def _items(page: Document) -> list[object]:
    items = page.get("items") or []
    if not isinstance(items, list):
        raise ApiServerError(f"the API server sends a list whose items are none: {items!r:.60}")
    return items


def _object(value: object) -> Document:
    if not isinstance(value, Mapping):
        raise ApiServerError(f"the API server sends something that is not an object: {value!r:.60}")
    return value


def backoff_s(failures: int) -> float:
    """Doubling from 0.1 s, a quarter of it random, 15 s at most."""
    whole = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(failures - 1, _DOUBLINGS))
    return whole * (1 - random.random() / 4)  # noqa: S311 - spreads load, no secret
