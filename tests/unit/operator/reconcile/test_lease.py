"""Several operators and one Lease, whatever happens to their requests and however long each sleeps."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from kvtier_common.errors import UnreachableError
from kvtier_common.kubernetes.answers import ConflictError, NotFoundError
from kvtier_common.kubernetes.client import Api, Request
from kvtier_operator.install.rbac import LEADER_ELECTION
from kvtier_operator.reconcile.lease import Lease, LeaseTimings

VERBS = {"GET": "get", "POST": "create", "PUT": "update"}


@dataclass
class Server:
    """Holds one Lease as an API server does; time passes while a request is under way."""

    now: float = 0.0
    stored: dict[str, Any] = field(default_factory=dict)
    methods: set[str] = field(default_factory=set)
    takes_s: tuple[float, float] = (0.0, 0.0)  # before and after a request has its effect
    loses: str = ""  # "request" or "answer"

    async def get(self, path: str) -> bytes:
        return await self.request(Request("GET", path))

    async def request(self, request: Request) -> bytes:
        self.methods.add(request.method)
        self.now += self.takes_s[0]
        if self.loses == "request":
            raise UnreachableError("lost")
        try:
            return self._answer(request)
        finally:
            self.now += self.takes_s[1]
            if self.loses == "answer":
                raise UnreachableError("lost")

    def _answer(self, request: Request) -> bytes:
        if request.method == "GET":
            if not self.stored:
                raise NotFoundError("no Lease")
        else:
            body = cast("dict[str, Any]", request.body)
            version = self.stored.get("metadata", {}).get("resourceVersion")
            if body["metadata"].get("resourceVersion") != version:
                raise ConflictError("changed")
            metadata = body["metadata"] | {"resourceVersion": str(int(version or 0) + 1)}
            self.stored = body | {"metadata": metadata}
        return json.dumps(self.stored).encode()


def candidates(server: Server, count: int) -> list[Lease]:
    return [
        Lease(cast("Api", server), "system", "operator", f"pod-{number}", now=lambda: server.now)
        for number in range(count)
    ]


LATER_S = (0.0, 0.0, 2.0, 2.0, 9.0, 14.0, 16.0)
TAKES_S = (*8 * [0.0], 2.0, 7.0, 16.0)
LOSES = (*8 * [""], "request", "answer")
WHICH = st.integers(0, 2)
steps = st.tuples(
    WHICH,
    st.sampled_from(LATER_S),
    st.tuples(*2 * [st.sampled_from(TAKES_S)]),
    st.sampled_from(LOSES),
)


@given(st.lists(st.one_of(*8 * [steps], WHICH), min_size=20, max_size=60))
def test_never_do_two_hold_it(story: list[tuple[int, float, tuple[float, float], str] | int]) -> None:
    """A step is a try, later or not, that may be lost; a number is one that gives it up."""
    server = Server()
    leases = candidates(server, 3)

    async def run() -> None:
        for step in story:
            if isinstance(step, int):
                await leases[step].release()
            else:
                which, later_s, server.takes_s, server.loses = step
                server.now += later_s
                await leases[which].attempt()
            assert sum(lease.is_held() for lease in leases) <= 1

    asyncio.run(run())
    assert {VERBS[method] for method in server.methods} <= {*LEADER_ELECTION[0].verbs}


def test_another_one_takes_it_after_its_time_or_at_once_when_it_is_given_up() -> None:
    server, timings = Server(), LeaseTimings()
    first, second, third = candidates(server, 3)

    async def run() -> None:
        assert await first.attempt()
        assert not await second.attempt()
        server.now += timings.lease_s
        assert not await second.attempt(), "it has not been seen for longer than its time"
        assert not first.is_held()
        server.now += timings.retry_s
        assert await second.attempt()
        assert not await first.attempt()
        await second.release()
        assert await third.attempt()

    asyncio.run(run())
    assert server.stored["spec"]["leaseTransitions"] == 3
