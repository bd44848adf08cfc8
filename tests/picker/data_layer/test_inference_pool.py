"""The pods of an InferencePool while the API server fails in every way that it can."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from tests.picker.data_layer.api_server import (
    PODS,
    POOLS,
    FakeApi,
    Fault,
    cut_off,
    pod,
    pool,
    running_api,
    status,
    text,
)
from tests.picker.data_layer.recorder import Recorder

from kvtier_scorer.picker.pods.cluster import InferencePoolPods

A, B, C = pod("a", "10.0.0.1"), pod("b", "10.0.0.2"), pod("c", "10.0.0.3")


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with running_api() as api:
        api.objects[PODS] = [A, B]
        yield api


@pytest.fixture
async def sink() -> Recorder:
    return Recorder()


@pytest.fixture
async def source(api: FakeApi, sink: Recorder) -> AsyncIterator[InferencePoolPods]:
    """A source whose retries follow one another at once."""
    source = InferencePoolPods(api.client(), "ns", "pool", lambda _: 0.01)
    run = asyncio.create_task(source.run(sink))
    yield source
    assert not run.done(), run.exception() or run
    run.cancel()
    await asyncio.wait([run])


def here(*names: str, port: int = 8000) -> dict[str, str]:
    ips = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}
    return {f"{ips[name]}:{port}": name for name in names}


async def test_pods_come_and_go_as_the_watch_says(
    api: FakeApi, sink: Recorder, source: InferencePoolPods
) -> None:
    await sink.until(lambda: sink.here == here("a", "b"))
    assert source.synced
    await api.send(PODS, "ADDED", C)
    await sink.until(lambda: sink.here == here("a", "b", "c"))
    await api.send(PODS, "MODIFIED", pod("a", "10.0.0.1", ready=False))
    await sink.until(lambda: sink.here == here("b", "c"))
    await api.send(PODS, "DELETED", B)
    await sink.until(lambda: sink.here == here("c"))
    assert sink.dropped == ["10.0.0.1:8000", "10.0.0.2:8000"]
    _, _, query = next(each for each in api.asked if each[:2] == (True, PODS))
    assert (query["labelSelector"], query["resourceVersion"]) == ("app=vllm", "7")


async def test_an_expired_watch_lists_again_and_drops_who_has_gone_meanwhile(
    api: FakeApi, sink: Recorder, source: InferencePoolPods, caplog: pytest.LogCaptureFixture
) -> None:
    await sink.until(lambda: sink.here == here("a", "b"))
    api.objects[PODS] = [B, C]
    await api.send(PODS, "ERROR", {"kind": "Status", "code": 410, "message": "too old"}, last=True)
    await sink.until(lambda: sink.here == here("b", "c"))
    api.objects[PODS] = [C]
    api.watches[PODS].append(status(410))
    await api.end(PODS)
    await sink.until(lambda: sink.here == here("c"))
    assert sink.dropped == ["10.0.0.1:8000", "10.0.0.2:8000"], "nobody was dropped and put again"
    assert source.synced
    assert not caplog.records, "that a watch expires is no trouble"


def event(**fields: object) -> bytes:
    return json.dumps({"type": "MODIFIED", "object": fields}).encode()


@pytest.mark.parametrize(
    "line",
    [
        b"<html>",
        b"[]",
        b'{"type": "ADDED"}',
        b'{"type": "ADDED", "object": "a pod"}',
        b'{"type": "ADDED", "object": {"metadata": null}}',
        b'{"type": "ADDED", "object": {"metadata": {}}}',
        b'{"type": "ERROR", "object": {"code": 500, "message": "etcd"}}',
        b"\xff\xfe",
    ],
)
async def test_a_watch_that_says_something_else_changes_nothing(
    api: FakeApi, sink: Recorder, source: InferencePoolPods, line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    await sink.until(lambda: sink.here == here("a", "b"))
    await api.send_line(PODS, line, last=True)
    await api.send(PODS, "ADDED", C)
    await sink.until(lambda: sink.here == here("a", "b", "c"))
    assert sink.dropped == []
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "\n" not in warnings[0]
    assert "the pods stay as they were" in warnings[0]
    assert source.synced


@pytest.mark.parametrize(
    ("fields", "is_left"),
    [
        ({"status": None}, True),
        ({"status": {"podIP": 7, "conditions": "x"}}, True),
        ({"status": {"podIP": "no address", "conditions": [{"type": "Ready", "status": "True"}]}}, True),
        ({"status": {"podIP": "10.0.0.1", "conditions": [None, 1, {"type": "Ready", "status": True}]}}, True),
        ({"spec": {"containers": 7}}, True),
        ({"status": A["status"] | {"containerStatuses": [None, "x"]}}, False),
    ],
)
async def test_a_pod_that_is_none_is_not_ready(
    api: FakeApi, sink: Recorder, source: InferencePoolPods, fields: dict[str, object], is_left: bool
) -> None:
    await sink.until(lambda: sink.here == here("a", "b"))
    await api.send_line(PODS, event(metadata=A["metadata"], **fields))
    await sink.until(lambda: sink.dropped == ["10.0.0.1:8000"])
    await sink.until(lambda: sink.here == (here("b") if is_left else here("a", "b")))
    assert source.synced


@pytest.mark.parametrize("fault", [cut_off, status(403), status(500), status(429), text(b"<html>")])
async def test_a_watch_that_fails_goes_on_from_where_it_was(
    api: FakeApi, sink: Recorder, source: InferencePoolPods, fault: Fault
) -> None:
    await sink.until(lambda: sink.here == here("a", "b"))
    await api.send(PODS, "MODIFIED", A | {"metadata": A["metadata"] | {"resourceVersion": "9"}})
    api.watches[PODS].extend([fault] * 3)
    await api.end(PODS)
    await api.send(PODS, "ADDED", C)
    await sink.until(lambda: sink.here == here("a", "b", "c"))
    assert sink.dropped == []
    assert [query["resourceVersion"] for is_watch, path, query in api.asked if is_watch and path == PODS][
        -1
    ] == "9"
    assert sum(not is_watch for is_watch, path, _ in api.asked if path == PODS) == 1
    assert source.synced


@pytest.mark.parametrize("path", [POOLS, PODS])
@pytest.mark.parametrize(
    "fault",
    [
        cut_off,
        status(403),
        status(500),
        text(b"<html>"),
        text(b"[]"),
        text(b'{"items": 7, "metadata": {}}'),
        text(b'{"items": {"a": 1}, "metadata": {}}'),
        text(b'{"items": [7], "metadata": {}}'),
        text(b'{"items": [{}], "metadata": {}}'),
        text(b'{"items": [{"metadata": {}}], "metadata": {}}'),
        text(b'{"items": [], "metadata": 7}'),
    ],
)
async def test_nothing_is_known_before_a_list_was_right(
    api: FakeApi, sink: Recorder, path: str, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    api.lists[path].extend([fault] * 3)
    api.lists[path].append(
        text(json.dumps({"metadata": {"resourceVersion": "1"}, "items": api.objects[path]}).encode())
    )
    synced: list[bool] = []

    def wait_s(_: int) -> float:
        synced.append(pods.synced)
        return 0.0

    pods = InferencePoolPods(api.client(), "ns", "pool", wait_s)
    run = asyncio.create_task(pods.run(sink))
    await sink.until(lambda: sink.here == here("a", "b"))
    assert len(synced) >= 3
    assert not any(synced[:3])
    assert sum(record.levelname == "WARNING" for record in caplog.records) == 1, "told once"
    run.cancel()
    await asyncio.wait([run])


async def test_a_list_comes_in_pages(api: FakeApi, sink: Recorder) -> None:
    api.lists[PODS].append(text(json.dumps({"metadata": {"continue": "more"}, "items": [A]}).encode()))
    api.objects[PODS] = [B]
    source = InferencePoolPods(api.client(), "ns", "pool", lambda _: 0.0)
    run = asyncio.create_task(source.run(sink))
    await sink.until(lambda: sink.here == here("a", "b"))
    assert [
        query.get("continue") for is_watch, path, query in api.asked if not is_watch and path == PODS
    ] == [None, "more"]
    run.cancel()
    await asyncio.wait([run])


async def test_a_pool_that_changes_takes_its_pods_along(
    api: FakeApi, sink: Recorder, source: InferencePoolPods, caplog: pytest.LogCaptureFixture
) -> None:
    await sink.until(lambda: sink.here == here("a", "b"))
    await api.send(POOLS, "MODIFIED", pool() | {"spec": {"selector": {}, "targetPorts": [{"number": 8000}]}})
    await api.send(POOLS, "MODIFIED", pool(9000))
    await sink.until(lambda: sink.here == here("a", "b", port=9000))
    assert "matchLabels has no labels; it stays as it was" in caplog.text
    await api.send(POOLS, "MODIFIED", pool(9000, app="other"))
    api.objects[PODS] = [C]
    await sink.until(lambda: sink.here == here("c", port=9000))
    await api.send(POOLS, "DELETED", pool(9000))
    await sink.until(lambda: sink.here == {})
    await api.send(POOLS, "ADDED", pool())
    await sink.until(lambda: sink.here == here("c"))
    assert source.synced
