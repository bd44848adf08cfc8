"""No accepted request fails while engines and picker are replaced. Last, for it leaves another resource."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cluster.harness.images.engines import SMALL_MODEL
from tests.cluster.harness.streams import Streams, streaming
from tests.cluster.node.engines import OURS, Engines
from tests.picker.harness.envoy import Envoy
from tests.shared.waiting import eventually

# Engines start beside their load on few cores, which takes many minutes.
pytestmark = pytest.mark.long
CLIENTS = 3
# What an answer takes with nothing beside it; beside others it takes twice as long, and more. A pod's preStop
# takes 10 s, so that some are under way when its engine is told to end.
SHORT_S, LONG_S = 10, 60
_PROBE_TOKENS, _MOST_TOKENS = 100, 1900
# The first answer of each engine takes longer than those that follow.
_PROBES = 5
# vLLM, v1/engine/core.py
_UNDER_WAY = re.compile(r"draining in-flight requests count=(\d+)")


@pytest.fixture
def drained(engines: Engines, tmp_path: Path) -> Iterator[Callable[[], int]]:
    """How many requests the engines had under way when they were told to end, by their own logs."""
    engines.scale(2)
    logs = [tmp_path / name for name in engines.ips()]
    following = [
        engines.site.kubectl.start(log, "logs", "--follow", log.name, "--container", "engine") for log in logs
    ]
    yield lambda: sum(int(count) for log in logs for count in _UNDER_WAY.findall(log.read_text()))
    for each in following:
        each.stop()


def tokens_in(length_s: float, envoy: Envoy) -> int:
    """Length of an answer that takes so long, by how quick this machine is."""
    with streaming(envoy.url("one"), SMALL_MODEL.name, clients=1, tokens=_PROBE_TOKENS) as probe:
        eventually(lambda: probe.whole >= _PROBES or probe.troubles, "answers to tell the pace by", 300)
    assert probe.troubles == []
    return min(_MOST_TOKENS, round(length_s * _PROBE_TOKENS / probe.shortest_s))


@contextmanager
def loaded(envoy: Envoy, length_s: float) -> Iterator[Streams]:
    """While requests come and are answered; in the end no more come, and those under way have ended."""
    tokens = tokens_in(length_s, envoy)
    with streaming(envoy.url("one"), SMALL_MODEL.name, clients=CLIENTS, tokens=tokens) as streams:
        yield streams
    print(f"{streams.whole} streams of {tokens} tokens, {streams.longest_s:.0f} s at most")  # noqa: T201 - seen with -s


# A row takes minutes: each picker meets short answers in one test and long ones in the other.
def test_a_rollout(engines: Engines, envoy: Envoy, drained: Callable[[], int]) -> None:
    old = set(engines.ips()) | set(engines.ips("picker"))
    spec = engines.site.kubectl.json("get", "kvct", engines.name)["spec"]
    capacity = int(spec["tiers"]["cpu"]["capacity"].removesuffix("Mi")) - 16
    weights = {"queue": spec["router"]["weights"]["queue"] + 1}
    change = {"spec": {"tiers": {"cpu": {"capacity": f"{capacity}Mi"}}, "router": {"weights": weights}}}
    with loaded(envoy, LONG_S if engines.kind == OURS else SHORT_S) as streams:
        engines.site.kubectl("patch", "kvct", engines.name, "--type=merge", f"--patch={json.dumps(change)}")
        engines.settle(2)
    assert streams.troubles == []
    assert not old & (set(engines.ips()) | set(engines.ips("picker"))), "all should have been replaced"
    assert drained(), "no request was under way when an engine was told to end"


# The engine that goes has something under way only if its picker sent something there before.
def test_fewer_engines(engines: Engines, envoy: Envoy, drained: Callable[[], int]) -> None:
    with loaded(envoy, SHORT_S if engines.kind == OURS else LONG_S) as streams:
        engines.scale(1)
    assert streams.troubles == []
    assert drained(), "no request was under way when an engine was told to end"
