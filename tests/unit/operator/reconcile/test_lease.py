"""Several operators and one Lease, whatever happens to their requests and however long each sleeps."""

import asyncio
import json
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal, cast

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.aio.client import Configuration

from kvtier_common.errors import UnreachableError
from kvtier_common.kubernetes.answers import ConflictError, NotFoundError
from kvtier_common.kubernetes.client import Api, Request
from kvtier_operator.generate.chart.values import Operator
from kvtier_operator.install.rbac import LEADER_ELECTION
from kvtier_operator.reconcile.__main__ import main
from kvtier_operator.reconcile.lease import Lease, LeaseTimings, LostLeaseError
from kvtier_operator.reconcile.serve import given_up

VERBS = {"GET": "get", "POST": "create", "PUT": "update"}


@dataclass
class Server:
    """Holds one Lease as an API server does; time passes while a request is under way."""

    now: float = 0.0
    stored: dict[str, Any] = field(default_factory=dict)
    methods: set[str] = field(default_factory=set)
    takes_s: tuple[float, float] = (0.0, 0.0)  # before and after a request has its effect
    loses: str = ""  # "request" or "answer"
    versions: "count[int]" = field(default_factory=lambda: count(1))

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
            metadata = body["metadata"] | {"resourceVersion": str(next(self.versions))}
            self.stored = body | {"metadata": metadata}
        return json.dumps(self.stored).encode()


def candidates(server: Server, number_of: int) -> list[Lease]:
    return [
        Lease(cast("Api", server), "system", "operator", f"pod-{number}", now=lambda: server.now)
        for number in range(number_of)
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


Step = tuple[int, float, tuple[float, float], str] | int | Literal["deleted"]
DELETED: st.SearchStrategy[Literal["deleted"]] = st.just("deleted")


@given(
    st.booleans(),
    st.lists(st.one_of(*8 * [steps], WHICH, DELETED), min_size=20, max_size=60),
)
def test_never_do_two_hold_it(is_known: bool, story: list[Step]) -> None:
    """A step is a try, later or not, that may be lost; a number is one that gives it up.

    It is deleted only where all have seen it: to one that never did, none is as good as a first one.
    """
    server = Server()
    leases = candidates(server, 3)

    async def run() -> None:
        for lease in leases if is_known else ():
            await lease.attempt()
        for step in story:
            if step == "deleted":
                server.stored = {} if is_known else server.stored
            elif isinstance(step, int):
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


def test_the_command_and_the_chart_take_the_same_seconds() -> None:
    (option,) = (parameter for parameter in main.params if parameter.name == "lease_seconds")
    chart = Operator.model_json_schema()["properties"]["leaseSeconds"]
    command = option.to_info_dict()
    bounds = (command["type"]["min"], command["type"]["max"], command["default"])
    assert bounds == (chart["minimum"], chart["maximum"], chart["default"])


def test_its_holder_makes_a_deleted_one_anew_and_another_one_waits_until_that_must_have_ended() -> None:
    server, timings = Server(), LeaseTimings()
    first, second = candidates(server, 2)

    async def run() -> None:
        assert await first.attempt()
        assert not await second.attempt()
        server.stored = {}
        assert not await second.attempt()
        for _ in range(20):
            assert await first.attempt()
            server.now += timings.retry_s
            assert not await second.attempt()
        assert second.leader() == first.holder

        server.stored = {}
        gone_at, longest_s = server.now, timings.lease_s + timings.made_s + 3 * timings.retry_s
        while not await second.attempt():
            server.now += timings.retry_s
        assert timings.lease_s < server.now - gone_at <= longest_s
        assert not await first.attempt()

    asyncio.run(run())


@pytest.mark.parametrize("ends", [True, False])
def test_it_is_given_up_when_the_writes_under_way_have_ended_or_not_at_all(
    ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An API server may carry out what a cancelled task has sent."""
    server = Server()
    (lease,) = candidates(server, 1)
    arrived, may_answer, answered = asyncio.Event(), asyncio.Event(), asyncio.Event()
    if not ends:
        monkeypatch.setattr("kvtier_operator.reconcile.serve._LAST_WRITES_S", 0.0)

    async def answer(_: web.Request) -> web.Response:
        arrived.set()
        await may_answer.wait()
        assert server.stored["spec"]["holderIdentity"] == lease.holder
        answered.set()
        return web.json_response({})

    async def work(api: Api) -> None:
        async with given_up(lease, api), asyncio.TaskGroup() as group:
            group.create_task(api.request(Request("PATCH", "/x", body={})))

    async def run() -> None:
        app = web.Application()
        app.router.add_patch("/x", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        (host, port), *_ = runner.addresses
        async with Api(Configuration(host=f"http://{host}:{port}"), "test", lease.check) as api:
            await lease.attempt()
            working = asyncio.create_task(work(api))
            await arrived.wait()
            working.cancel()
            if ends:
                while not lease.ends:  # noqa: ASYNC110 - turns of the loop, no time
                    await asyncio.sleep(0)
                with pytest.raises(LostLeaseError):
                    await api.request(Request("PATCH", "/x", body={}))
                may_answer.set()
            await asyncio.wait([working])
            assert server.stored["spec"]["holderIdentity"] == ("" if ends else lease.holder)
            assert answered.is_set() == ends
            may_answer.set()
        await runner.cleanup()

    asyncio.run(asyncio.wait_for(run(), 30))
