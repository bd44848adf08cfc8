"""Keeps up with a collection of objects: list, then watch from there, for ever."""

import asyncio
import logging
import random
import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kvtier_common.backoff import doubled_s
from kvtier_scorer.picker.pods.api_server import (
    MOST_BYTES,
    TABLE,
    ApiServer,
    ApiServerError,
    CutLine,
    ExpiredError,
    TooLargeError,
    parsed,
    status_error,
)

_LOG: Final = logging.getLogger(__name__)
_PAGE: Final = 50
"""Fewer where they are large: whoever may make pods can make each of them 1.5 MB."""
_NAME: Final = re.compile(rb'"metadata":\{"name":"([^"\\]{1,253})"')
"""In the head of a watch's line: the API server writes an object's name before all that can be long."""
_WATCH_S: Final = 290
"""The server ends a watch after this long; below the five minutes that load balancers allow."""
_LASTED_S: Final = 5.0
"""A watch that lived this long did work: the next one starts without waiting."""
_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 15.0
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

    An object that is too large to read counts as none, and holds up no other.

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
    _left_out: set[str] = field(default_factory=set)

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
                    if isinstance(line, CutLine):
                        self._leave_out(line)
                    else:
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
        left_out: set[str] = set()
        query, limit = dict(self.query), _PAGE
        while True:
            asked = {**query, "limit": str(limit)}
            try:
                page = await self.api.get(self.path, asked)
            except TooLargeError:
                if limit > 1:
                    limit = max(1, limit // 4)
                    continue
                page = await self.api.get(self.path, {**asked, "includeObject": "None"}, TABLE)
                left_out.update(_table_names(page))
            else:
                for item in _items(page):
                    document = _object(item)
                    names.add(name_of(document))
                    self.sink.seen(document)
            limit = min(_PAGE, 2 * limit)
            metadata = _object(page.get("metadata"))
            if not metadata.get("continue"):
                break
            query["continue"] = str(metadata["continue"])
        self._tell_left_out(left_out - self._left_out)
        self._left_out = left_out
        self.sink.only(frozenset(names))
        return str(metadata.get("resourceVersion") or "")

    def _leave_out(self, line: CutLine) -> None:
        """An object became too large: from what is known of it, it is gone."""
        found = _NAME.search(line.head)
        if found is None:
            raise ExpiredError(f"watch {self.path}: a line too long to read, of no name")
        name = found.group(1).decode(errors="replace")
        self._tell_left_out({name} - self._left_out)
        self._left_out.add(name)
        self.sink.gone({"metadata": {"name": name}})

    def _tell_left_out(self, names: AbstractSet[str]) -> None:
        if names:
            _LOG.warning(
                "%s: %d left out that are larger than %d bytes, such as %s; make them smaller",
                self.path,
                len(names),
                MOST_BYTES,
                min(names),
            )

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


def _table_names(table: Document) -> list[str]:
    """The first column of a Table is the name."""
    rows = table.get("rows") or []
    cells = [_object(row).get("cells") for row in rows] if isinstance(rows, list) else []
    return [str(each[0]) for each in cells if isinstance(each, list) and each]


def _object(value: object) -> Document:
    if not isinstance(value, Mapping):
        raise ApiServerError(f"the API server sends something that is not an object: {value!r:.60}")
    return value


def backoff_s(failures: int) -> float:
    """Doubling from 0.1 s, a quarter of it random, 15 s at most."""
    whole = doubled_s(_FIRST_WAIT_S, _LONGEST_WAIT_S, failures - 1)
    return whole * (1 - random.random() / 4)  # noqa: S311 - spreads load, no secret
