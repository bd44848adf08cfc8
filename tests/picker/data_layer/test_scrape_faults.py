"""Scrapes of a pod that answers, and of one that does everything else."""

import asyncio
import gzip
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from tests.picker.data_layer.conftest import Answer, Pod
from tests.picker.data_layer.recorder import Recorder

from kvtier_common.metrics.text import MOST_BYTES
from kvtier_scorer.picker.engines.scraper import Scraper


@pytest.fixture
async def sink() -> Recorder:
    return Recorder()


@pytest.fixture
async def scraper(sink: Recorder) -> AsyncIterator[Scraper]:
    async with Scraper(sink, 0.01, timeout_s=0.2, spread=lambda: 0.0) as scraper:
        yield scraper


async def test_a_pod_is_scraped_again_and_again_over_one_connection(
    pod: Pod, sink: Recorder, scraper: Scraper
) -> None:
    scraper.follow(pod.address)
    scraper.follow(pod.address)
    await sink.until(lambda: len(sink.scrapes) >= 20)
    assert {each.running for each in sink.scrapes} == {1}
    assert len(pod.connections) == 1
    assert "gzip" not in pod.requests[0].headers["Accept-Encoding"]


async def html(_: web.Request) -> web.StreamResponse:
    return web.Response(text=f"<html>{id(object())}</html>", content_type="text/html")


async def binary(_: web.Request) -> web.StreamResponse:
    return web.Response(body=bytes(range(256)) * 999)


async def failing(_: web.Request) -> web.StreamResponse:
    return web.Response(status=503)


async def redirect(_: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("/elsewhere")


async def huge(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(2 * (MOST_BYTES >> 20)):
        await response.write(b"x 1\n" * (1 << 18))
    return response


async def long_label(_: web.Request) -> web.StreamResponse:
    return web.Response(body=b'vllm:num_requests_running{%b="1"} 1\n' % (b"x" * 65_500))


async def packed(_: web.Request) -> web.StreamResponse:
    return web.Response(body=gzip.compress(bytes(100_000_000)), headers={"Content-Encoding": "gzip"})


async def infinite(_: web.Request) -> web.StreamResponse:
    return web.Response(body=b"vllm:num_requests_running +Inf\nvllm:num_requests_waiting 1e300\n")


async def hang(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def half(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b"vllm:num_requests_running 1\n")
    assert request.transport is not None
    request.transport.close()
    return response


async def no_http(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.write(b"\x00\x01 this is no HTTP\r\n\r\n")
    request.transport.close()
    return web.Response()


FAULTS = [
    html, binary, failing, redirect, huge, long_label, packed, infinite, hang, half, no_http,
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_told_once_and_the_next_scrape_is_fine(
    pod: Pod, sink: Recorder, scraper: Scraper, fault: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    scraper.follow(pod.address)
    await sink.until(lambda: len(sink.scrapes) >= 1)
    pod.answer = fault
    await sink.until(lambda: len(sink.failures) >= 3)
    assert scraper.failures.keys() == {pod.address}
    before = len(sink.scrapes)
    pod.answer = pod.metrics
    await sink.until(lambda: len(sink.scrapes) > before)
    assert scraper.failures == {}
    said = [record for record in caplog.records if record.name.startswith("kvtier")]
    assert [record.levelname for record in said].count("WARNING") == 1
    assert all("\n" not in record.getMessage() for record in said)


async def test_a_pod_that_is_not_there_is_tried_again(
    sink: Recorder, scraper: Scraper, unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    scraper.follow(f"127.0.0.1:{unused_tcp_port}")
    await sink.until(lambda: len(sink.failures) >= 5)
    assert caplog.text.count("cannot connect") == 1


async def test_nothing_of_a_pod_that_left_is_told(pod: Pod, sink: Recorder, scraper: Scraper) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        asked.set()
        await answer.wait()
        return await pod.metrics(request)

    pod.answer = slow
    scraper.follow(pod.address)
    await asked.wait()
    scraper.forget(pod.address)
    answer.set()
    pod.answer = pod.metrics
    other = Recorder()
    async with Scraper(other, 0.01, spread=lambda: 0.0) as another:
        another.follow(pod.address)
        await other.until(lambda: len(other.scrapes) >= 3)
    assert (sink.scrapes, sink.failures) == ([], [])


async def test_pods_that_answer_without_end_delay_nobody(pod: Pod, sink: Recorder, scraper: Scraper) -> None:
    async def without_end(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"\n" * 65_536)

    bad = web.Application()
    bad.router.add_route("*", "/{path:.*}", without_end)
    runner = web.AppRunner(bad, shutdown_timeout=0.1)
    await runner.setup()
    for _ in range(3):
        await web.TCPSite(runner, "127.0.0.1", 0).start()
    scraper.follow(pod.address)
    for host, port in runner.addresses:
        scraper.follow(f"{host}:{port}")
    await sink.until(lambda: len(sink.failures) >= 9)
    before = len(sink.scrapes)
    await sink.until(lambda: len(sink.scrapes) >= before + 20)
    failures = set(sink.failures)
    await runner.cleanup()
    assert failures <= {
        "/metrics is not an engine's: it is longer than 4194304 bytes",
        "/metrics does not answer in time",
    }
