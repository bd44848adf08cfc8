"""One trace from a resource's own gateway to the engine, with a real Envoy, kvtier's picker, a collector."""

import json
from collections.abc import Iterator, Sequence

import pytest
from tests.picker.harness.client import post
from tests.picker.harness.collector import Collector, Span, running_collector
from tests.picker.harness.envoy import Envoy
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.own import OwnStart, running_own
from tests.picker.standalone.placed import Wanted, running_gateway
from tests.shared.waiting import eventually

TRACED = Wanted(tracing={"endpoint": "http://collector.test:4317", "samplingRatio": 1})
TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with running_collector() as running:
        yield running


@pytest.fixture(scope="module")
def gateway(collector: Collector, fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Envoy]:
    folder = tmp_path_factory.mktemp("traced")
    place = f"http://127.0.0.1:{collector.port}"
    # as in its pod, but for the place, and sent at once
    variables = {**TRACED.picker_variables(), "OTEL_EXPORTER_OTLP_ENDPOINT": place}
    variables["OTEL_BSP_SCHEDULE_DELAY"] = "50"
    [option] = [word for word in TRACED.picker_arguments() if word.startswith("--tracing")]
    start = OwnStart(TRACED.picker_config(), tls=True, arguments=[option], environment=variables)
    with running_own(start, fleet.pods, folder) as picker:
        places = {"case-engine": fleet.pods, "case-picker": [picker.address]}
        places["collector.test"] = [("127.0.0.1", collector.port)]
        with running_gateway(TRACED, places, folder / "gateway") as envoy:
            yield envoy


def ask(envoy: Envoy, fleet: Fleet, **headers: str) -> str:
    """Asks once, and returns the traceparent that the engine got."""
    heads: list[bytes] = []
    for engine in fleet.engines.values():
        engine.heads = heads.append
    body = json.dumps({"model": "fake", "prompt": "a prompt that is looked for " * 40}).encode()
    assert post(envoy.url("gateway") + "/v1/completions", body, headers).status == 200
    [head] = heads
    lines = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
    return lines[b"traceparent"].decode()


def spans_of(collector: Collector, trace: str) -> Sequence[Span]:
    return [span for span in collector.spans if span.trace == trace]


def whole(collector: Collector, trace: str, spans: int) -> Sequence[Span]:
    """For each request two of the gateway, for itself and for its call, and one of the picker."""
    eventually(lambda: len(spans_of(collector, trace)) >= spans, f"{spans} spans")
    return spans_of(collector, trace)


def test_gateway_picker_and_engine_share_a_trace(gateway: Envoy, collector: Collector, fleet: Fleet) -> None:
    seen = [ask(gateway, fleet) for _ in range(5)]
    version, trace, parent, flags = seen[-1].split("-")
    assert (version, flags) == ("00", "01")
    spans = whole(collector, trace, 3)
    by_id = {span.span: span for span in spans}
    [pick] = [span for span in spans if span.service == "case-picker"]
    # the call to the picker is the gateway's span, and the engine's is to be beside it
    asked = by_id[pick.parent]
    assert (asked.service, asked.parent) == ("case-gateway", parent)
    said = pick.attributes
    assert said["kvtier.endpoint"] in fleet.addresses
    assert said["kvtier.candidates"] == len(fleet.pods)
    assert said["kvtier.matched_tokens.gpu"] > 0
    assert "a prompt" not in str(said)


def test_it_goes_on_with_the_clients_trace_and_leaves_alone_what_that_leaves_out(
    gateway: Envoy, collector: Collector, fleet: Fleet
) -> None:
    unsampled = ask(gateway, fleet, traceparent=f"00-{'b' * 32}-b7ad6b7169203331-00")
    assert unsampled.startswith(f"00-{'b' * 32}-")
    for _ in range(5):
        assert ask(gateway, fleet, traceparent=f"00-{TRACE}-b7ad6b7169203331-01").split("-")[1] == TRACE
    assert {span.service for span in whole(collector, TRACE, 15)} == {"case-gateway", "case-picker"}
    assert not spans_of(collector, "b" * 32)
