"""Keeps a local view of some objects: list, then watch from there, for ever."""

import asyncio
import logging
import random
import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kvtier_common.errors import KvtierError, TooLargeError, UnreachableError
from kvtier_common.http.answer import CutLine
from kvtier_common.kubernetes import answers
from kvtier_common.kubernetes.client import TABLE, Api, api_error

_LOG: Final = logging.getLogger(__name__)
_PAGE: Final = 50
"""Small: a page is parsed into ten times its bytes, and the peak of a restart stays resident. Fewer where
they are large: whoever may make objects can make each of them 1.5 MB."""
_PAGE_BYTES: Final = 4 << 20
_NAME: Final = re.compile(rb'"metadata":\{"name":"([^"\\]{1,253})"')
"""In the head of a watch's line: the API server writes an object's name before all that can be long."""
_WATCH_S: Final = 290
"""The server ends a watch after this long; below the five minutes that load balancers allow."""
_LASTED_S: Final = 5.0  # a watch that lived this long did work: the next one starts without waiting


class Sink(Protocol):
    """Who keeps the objects that a reflector reads."""

    def upsert(self, document: dict[str, Any]) -> None:
        """An object is there, new or changed or as before."""

    def delete(self, document: dict[str, Any]) -> None:
        """An object was deleted, or is no longer one of those that were asked for."""

    def replace(self, places: set[answers.Place], version: int) -> None:
        """A list is complete: at its resource version there were these and no others. They were upserted."""


@dataclass(frozen=True, slots=True)
class ReflectorPolicy:
    """What is done when something is wrong."""

    wait_s: Callable[[int], float]  # seconds to wait after so many failures in a row
    # whether everything is listed again after an error (None for a watch that ended), and so many failures in
    # a row
    relists: Callable[[KvtierError | None, int], bool]
    ends_on: tuple[type[KvtierError], ...]  # errors that end the reflector; after any other it tries again
    object_bytes: int  # the largest object to read
    leaves_out: bool  # whether a larger one counts as none, and holds up no other; else it is an error
    meanwhile: str  # what becomes of what was seen, for the log


@dataclass(slots=True)
class Reflector:
    """One list+watch. Only what the server says is gone: nothing while out of reach, or between lists."""

    api: Api
    name: str  # for logs and metrics
    path: str
    query: Mapping[str, str]  # which of its objects, by label or field
    sink: Sink  # who keeps the objects
    policy: ReflectorPolicy  # what is done when something is wrong
    # how many lists may be read at a time; the peak of a restart's memory
    turns: asyncio.Semaphore = field(default_factory=asyncio.Semaphore)
    # called with the name and the reason each time the watch has to start anew for trouble
    restarted: Callable[[str, str], None] = lambda _name, _reason: None
    # set while the sink has a complete list, and the server lets it be kept up to date
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    alive_at: float = 0.0  # when something last came from the server, in seconds of the loop's clock
    trouble: str = ""  # what the server said when it last failed; empty while it goes well
    refusal: asyncio.Event = field(default_factory=asyncio.Event)  # set while that was for want of rights
    _left_out: set[str] = field(default_factory=set)

    async def run(self) -> None:
        """Lists and watches until cancelled. Raises KvtierError: one of the policy's `ends_on`."""
        failures, version = 0, ""
        while True:
            self._touch()
            started_s, error = self.alive_at, None
            try:
                version = version or await self._list()
                watch = self.api.watch(
                    self.path, self._watch_query(version), most_bytes=self.policy.object_bytes
                )
                async with aclosing(watch) as lines:
                    async for line in lines:
                        version = self._take(line) or version
            except answers.ExpiredError:
                version = ""
                self.restarted(self.name, "expired")
            except self.policy.ends_on:
                raise
            except KvtierError as caught:
                error = caught
                self._worse(caught)
            failures = failures_after(
                failures,
                failed=error is not None,
                answered=self.alive_at > started_s,
                lasted_s=asyncio.get_running_loop().time() - started_s,
            )
            if self.policy.relists(error, failures):
                version = ""
            if failures:
                await asyncio.sleep(self.policy.wait_s(failures))

    async def _list(self) -> str:
        """Everything, page by page; returns the resource version to watch from."""
        places: set[answers.Place] = set()
        left_out: set[str] = set()
        query, limit = dict(self.query), _PAGE
        while True:
            async with self.turns:
                try:
                    page = await self._page(query, limit)
                except TooLargeError:
                    if limit > 1:
                        limit = max(1, limit // 4)
                        continue
                    if not self.policy.leaves_out:
                        raise
                    page = await self._page(query | {"includeObject": "None"}, 1, TABLE)
                    left_out.update(answers.table_names(page))
                limit = min(_PAGE, 2 * limit)
                self._touch()
                documents = answers.items_of(page)
                documents.reverse()
                while documents:  # each is let go of once the sink has it
                    document = answers.as_object(documents.pop())
                    places.add(answers.place_of(document))
                    self.sink.upsert(document)
            following = answers.as_object(page.get("metadata")).get("continue")
            if not following:
                break
            query["continue"] = str(following)
        version = answers.version_of(page)
        if not version.isdecimal():
            raise UnreachableError(f"the API server sends a list of no version: {version!r:.60}")
        self._tell_left_out(left_out - self._left_out)
        self._left_out = left_out
        self.sink.replace(places, int(version))
        self._better()
        return version

    async def _page(self, query: Mapping[str, str], limit: int, *accept: str) -> dict[str, Any]:
        most_bytes = min(_PAGE_BYTES, self.policy.object_bytes) if limit > 1 else self.policy.object_bytes
        asked = {**query, "limit": str(limit)}
        return answers.parse_document(await self.api.get(self.path, asked, *accept, most_bytes=most_bytes))

    def _watch_query(self, version: str) -> dict[str, str]:
        spread = random.randint(0, _WATCH_S // 10)  # noqa: S311 - spreads load, no secret
        return {
            **self.query,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(_WATCH_S - spread),
        }

    def _take(self, line: bytes | CutLine) -> str:
        """Takes one line of a watch; returns the resource version that it brings, empty without one."""
        self._touch()
        if isinstance(line, CutLine):
            self._leave_out(line)
            return ""
        event = answers.parse_document(line)
        document = answers.as_object(event.get("object"))
        match event.get("type"):
            case "ADDED" | "MODIFIED":
                answers.place_of(document)
                self.sink.upsert(document)
            case "DELETED":
                answers.place_of(document)
                self.sink.delete(document)
            case "ERROR":
                raise api_error(document.get("code", 500), document, f"watch {self.path} failed")
        version = answers.version_of(document)
        self._better()
        return version

    def _leave_out(self, line: CutLine) -> None:
        """An object became too large: from what is known of it, it is gone."""
        if not self.policy.leaves_out:
            raise TooLargeError(f"watch {self.path}: a line of more than {self.policy.object_bytes} bytes")
        match = _NAME.search(line.head)
        if match is None:
            raise answers.ExpiredError(f"watch {self.path}: a line too long to read, of no name")
        name = match.group(1).decode(errors="replace")
        self._tell_left_out({name} - self._left_out)
        self._left_out.add(name)
        self.sink.delete({"metadata": {"name": name}})

    def _tell_left_out(self, names: AbstractSet[str]) -> None:
        if names:
            _LOG.warning(
                "%s: %d left out that are larger than %d bytes, such as %s; make them smaller",
                self.name,
                len(names),
                self.policy.object_bytes,
                min(names),
            )

    def _worse(self, error: KvtierError) -> None:
        """Notes a trouble, and says in one line when it begins or becomes another."""
        self.restarted(self.name, type(error).__name__.removesuffix("Error").lower())
        if self.trouble != str(error):
            _LOG.warning("watching %s: %s; %s", self.name, error, self.policy.meanwhile)
        self.trouble = str(error)
        if isinstance(error, answers.ForbiddenError):
            self.synced.clear()  # nobody knows for how long
            self.refusal.set()

    def _better(self) -> None:
        if self.trouble:
            _LOG.info("watching %s: goes on", self.name)
        self.trouble = ""
        self.refusal.clear()
        self.synced.set()

    def _touch(self) -> None:
        self.alive_at = asyncio.get_running_loop().time()


def failures_after(before: int, *, failed: bool, answered: bool, lasted_s: float) -> int:
    """Failures in a row after one more list+watch; one that was too short counts as one."""
    worked = lasted_s >= _LASTED_S and (answered or not failed)
    return (0 if worked else before) + (failed or not worked)
