"""The most that clients can make the picker hold, beside the limit that the operator renders for its pod."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final, TypeAlias, cast

import grpc
import pytest
from tests.cases.planning import resource
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.own import Own, OwnStart, running_own
from tests.unit.scorer.picker.gateway.protocol import gateway
from tests.unit.scorer.picker.gateway.protocol.gateway import answer, kinds

from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.router.router_plan import RouterPlan
from kvtier_scorer.picker.gateway.bodies.json_size import MOST_CONTAINERS, MOST_STRINGS, MOST_VALUES

Process: TypeAlias = "grpc.aio.StreamStreamMultiCallable[bytes, bytes]"
PROCESS: Final = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
EACH: Final = 8 << 20
CHUNK: Final = 62_000
CHAT: Final = "/v1/chat/completions"
GOOD: Final = b'{"model": "fake", "prompt": "once upon a time"}'


def many(unit: bytes, count: int) -> bytes:
    """A list of `count` times the same."""
    return b"[" + unit * (count - 1) + unit.rstrip(b",") + b"]"


def chat(content: bytes) -> bytes:
    return b'{"messages": [{"role": "user", "content": %s}]}' % content


def filled(body: bytes) -> bytes:
    """The same as long as a body may be."""
    return body + b" " * (EACH - len(body))


WORST: Final = {
    "messages": b'{"messages": %s}' % many(b'{"role":"u"},', MOST_STRINGS // 2 - 100),
    "parts": chat(many(b'{"a":1},', MOST_CONTAINERS - 100)),
    "strings": chat(many(b'"ab",', MOST_STRINGS - 100)),
    "numbers": chat(many(b"123456789012,", MOST_VALUES - 100)),
    "lists": chat(many(b"[],", MOST_CONTAINERS - 100)),
    "fields": chat(b"[{%s}]" % b",".join(b'"%x":1' % number for number in range(MOST_STRINGS - 100))),
    "wide": chat(b'"' + b"x" * (EACH - 100) + "\U0001f600".encode() + b'"'),
    "escapes": chat(b'"' + b"\\u4f60" * ((EACH - 100) // 6) + b'"'),
    "dense": chat(many(b"{},", EACH // 3 - 100)),
    "not JSON": b'{"model"',
}

BRIEF: Final = ("parts", "escapes", "not JSON")
"""Of containers, of one text, and refused; the others take longer than they find."""


def messages(path: str, body: bytes, *, ended: bool = True) -> list[bytes]:
    parts = [body[start : start + CHUNK] for start in range(0, len(body), CHUNK)]
    return [
        gateway.request_headers({":path": path}),
        *(
            gateway.request_body(part, end_of_stream=ended and place == len(parts))
            for place, part in enumerate(parts, 1)
        ),
    ]


class Peak:
    """Resident memory of a process, watched."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._clear = Path(f"/proc/{pid}/clear_refs")
        self._clear.write_text("5")  # the kernel forgets the peak so far

    def read(self) -> int:
        [line] = [line for line in self._status.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024


@pytest.fixture(scope="module")
def plan() -> RouterPlan:
    return make_plan(resource(router={"flavor": "builtin"}), Observed()).router


@pytest.fixture
def own(fleet: Fleet, plan: RouterPlan, tmp_path: Path) -> Iterator[Own]:
    with running_own(OwnStart(plan.config), fleet.pods, tmp_path) as running:
        yield running


@pytest.fixture
async def process(own: Own) -> AsyncIterator[Process]:
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{own.port}", options=options) as channel:
        yield channel.stream_stream(PROCESS)


async def told(process: Process, sent: list[bytes]) -> list[bytes]:
    return [each async for each in process(iter(sent), timeout=60)]


async def good(process: Process) -> None:
    assert kinds(await told(process, messages("/v1/completions", GOOD))) == [
        "request_headers",
        "request_body",
    ]


def check(own: Own, plan: RouterPlan, peak: Peak) -> None:
    limit = parse_bytes(plan.resources.limits["memory"])
    assert peak.read() < plan.resources.memory_bytes <= limit
    assert "Traceback" not in own.process.log.read_text()


@pytest.mark.parametrize(
    "kind", [*BRIEF, *(pytest.param(kind, marks=pytest.mark.long) for kind in WORST if kind not in BRIEF)]
)
async def test_the_worst_bodies_at_once(own: Own, process: Process, plan: RouterPlan, kind: str) -> None:
    peak = Peak(own.process.pid)
    body = filled(WORST[kind])
    sent = messages(CHAT, body)
    first: set[str] = set()
    for _ in range(2):
        for answers in await asyncio.gather(
            *(told(process, sent) for _ in range(12)), return_exceptions=True
        ):
            if isinstance(answers, list):
                first.add(kinds(answers)[0])
    await good(process)
    assert first <= {"request_headers", "immediate_response"}
    assert ("request_headers" in first) == (kind != "not JSON")
    check(own, plan, peak)


async def test_uploads_that_never_end_cost_nobody_else_a_request(
    own: Own, process: Process, plan: RouterPlan
) -> None:
    peak = Peak(own.process.pid)
    unfinished = messages(CHAT, filled(b"[")[:-1], ended=False)
    calls = []
    for _ in range(30):
        call = process()
        calls.append(call)
        for each in unfinished:
            try:
                await call.write(each)
            except (asyncio.InvalidStateError, grpc.aio.AioRpcError):
                break  # it has been refused for another
        await good(process)
    # 22 of them would be more than all bodies may have, and the first hold what they hold for the longest
    async with asyncio.timeout(60):
        first = [cast("bytes", await call.read()) for call in calls[:22]]
    assert {answer(each).immediate_response.status.code for each in first} == {503}
    for call in calls:
        call.cancel()
    check(own, plan, peak)
