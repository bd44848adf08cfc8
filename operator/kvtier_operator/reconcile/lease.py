"""Which of several operators reconciles: the one that holds a Lease (coordination.k8s.io/v1).

Whoever holds it renews it, and may write for two thirds of the Lease's time after it last asked to. Another
one takes it when it has not seen it change for the whole of that time, so a third of it lies between the last
write of the one and the first of the other. Clocks of different machines are never compared.

A Lease that somebody deletes is made anew by its holder, which goes on. To all others, that it is gone is a
change like any; and whoever makes it then begins only when the last one to have held it must have ended.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from kvtier_common.errors import KvtierError
from kvtier_common.kubernetes.answers import ConflictError, Document, NotFoundError, parse_document
from kvtier_common.kubernetes.client import Api, Request
from kvtier_operator.lease_seconds import DEFAULT_LEASE_S
from kvtier_operator.reconcile.observability import LEADER

_LOG: Final = logging.getLogger(__name__)
_VERSION: Final = "coordination.k8s.io/v1"
_RELEASE_S: Final = 2.0
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""It goes on while a process is stopped, and on Linux while the machine sleeps."""


class LostLeaseError(KvtierError):
    """Another operator may reconcile by now."""


@dataclass(frozen=True, slots=True)
class LeaseTimings:
    """How long a Lease outlives its holder, and what follows from that, in seconds."""

    lease_s: int = DEFAULT_LEASE_S

    @property
    def held_s(self) -> float:
        """How long its holder may write after it asked to renew it."""
        return self.lease_s * 2 / 3

    @property
    def made_s(self) -> float:
        """How long one who made it anew waits: a holder may have made it, and lost it again, unseen."""
        return 2 * self.held_s

    @property
    def retry_s(self) -> float:
        """How often it is renewed, or looked at."""
        return self.lease_s * 2 / 15

    @property
    def request_s(self) -> float:
        """The longest that one try may take, so that there is time for another."""
        return self.held_s / 2


def boot_clock() -> float:
    """Seconds since the machine started."""
    return time.clock_gettime(_CLOCK)


@dataclass(slots=True)
class Lease:
    """One Lease, as one of those who want it knows it."""

    api: Api
    namespace: str
    name: str
    holder: str  # what this process is called, as no other is
    timings: LeaseTimings = field(default_factory=LeaseTimings)
    now: Callable[[], float] = boot_clock
    trouble: str = ""  # why the last try failed
    ends: bool = False  # whether this process writes no more, though it still holds it
    _seen: Document = field(default_factory=dict)
    _changed_at: float = 0.0  # when it was first seen as it is
    _was_there: bool = False
    _held_from: float = 0.0
    _held_until: float = 0.0

    def is_held(self) -> bool:
        """Whether this process may write."""
        return self._held_from <= self.now() < self._held_until

    def check(self) -> None:
        """Raises LostLeaseError unless this process may write."""
        if self.ends or not self.is_held():
            raise LostLeaseError(f"the Lease {self} is no longer held: nothing is written")

    def leader(self) -> str:
        """Who holds it, as far as this process has seen; empty for nobody."""
        return str(_spec(self._seen).get("holderIdentity") or "")

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    async def acquire(self) -> None:
        """Waits until it is held."""
        stood_by_for = ""
        while not await self.attempt():
            if (leader := self.leader()) != stood_by_for:
                stood_by_for = leader
                _LOG.info("standing by: %s holds the Lease %s", leader or "nobody", self)
            await asyncio.sleep(self.timings.retry_s)
        LEADER.set(1)
        _LOG.info("leading: %s holds the Lease %s", self.holder, self)

    async def keep(self) -> None:
        """Renews it until it is lost, which is a LostLeaseError."""
        while True:
            await asyncio.sleep(self.timings.retry_s)
            if not await self.attempt():
                LEADER.set(0)
                why = self.trouble or f"{self.leader() or 'nobody'} holds it"
                raise LostLeaseError(f"lost the Lease {self}: {why}")

    async def release(self) -> None:
        """Gives it up, once nothing is written any more, so that another one need not wait."""
        if not self.is_held() or not self._seen:
            return
        self._held_until = 0.0
        LEADER.set(0)
        with contextlib.suppress(KvtierError, TimeoutError):
            async with asyncio.timeout(_RELEASE_S):
                await self._write("")

    async def attempt(self) -> bool:
        """Tries once to take or renew it; returns whether it is held."""
        try:
            async with asyncio.timeout(self.timings.request_s):
                await self._take_or_renew()
            self.trouble = ""
        except (KvtierError, TimeoutError) as error:
            trouble = str(error) or f"no answer within {self.timings.request_s:.1f} s"
            if trouble != self.trouble:
                _LOG.warning("the Lease %s: %s; trying again", self, trouble)
            self.trouble = trouble
        return self.is_held()

    async def _take_or_renew(self) -> None:
        if self.leader() != self.holder:
            await self._look()
        if not self._is_free():
            return
        asked_at = self.now()
        try:
            await self._write(self.holder)
        except (ConflictError, NotFoundError):  # somebody was faster, an answer was lost, or it was deleted
            await self._look()
        else:
            self._held_until = asked_at + self.timings.held_s

    async def _look(self) -> None:
        try:
            self._take_in(parse_document(await self.api.get(self._path(self.name))))
        except NotFoundError:
            self._take_in({})
        if self._seen and self.leader() != self.holder:
            self._held_until = 0.0

    def _is_free(self) -> bool:
        if not self._seen and self._was_there:
            return self.is_held() or self.now() > self._changed_at + self.timings.lease_s
        lasts_s = max(float(_spec(self._seen).get("leaseDurationSeconds") or 0), self.timings.lease_s)
        return self.leader() in ("", self.holder) or self.now() > self._changed_at + lasts_s

    async def _write(self, holder: str) -> None:
        before, now = _spec(self._seen), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        is_new = before.get("holderIdentity") != holder
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": self.timings.lease_s,
            "renewTime": now,
            "acquireTime": now if is_new else before.get("acquireTime", now),
            "leaseTransitions": int(before.get("leaseTransitions") or 0) + (is_new and bool(before)),
        }
        metadata = self._seen.get("metadata") or {"name": self.name, "namespace": self.namespace}
        body = {"apiVersion": _VERSION, "kind": "Lease", "metadata": metadata, "spec": spec}
        method, path = ("PUT", self._path(self.name)) if self._seen else ("POST", self._path())
        self._take_in(parse_document(await self.api.request(Request(method, path, body=body))))

    def _take_in(self, document: Document) -> None:
        if _resource_version(document) != _resource_version(self._seen):
            self._changed_at = self.now()
        is_anew = bool(document) and not self._seen and self._was_there
        self._was_there = self._was_there or bool(document)
        self._seen = document
        if is_anew and not self.is_held():
            self._held_from = self.now() + self.timings.made_s

    def _path(self, name: str = "") -> str:
        return f"/apis/{_VERSION}/namespaces/{self.namespace}/leases" + (f"/{name}" if name else "")


def _spec(document: Document) -> dict[str, Any]:
    return document.get("spec") or {}


def _resource_version(document: Document) -> object:
    return (document.get("metadata") or {}).get("resourceVersion")
