"""No accepted request fails while engines and picker are replaced. Last, for it leaves another resource."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.cluster.harness.images.engines import SMALL_MODEL
from tests.cluster.harness.streams import Streams, streaming
from tests.cluster.node.engines import OURS, Engines
from tests.picker.harness.envoy import Envoy
from tests.shared.waiting import eventually

# Engines start beside their load on few cores, which takes many minutes.
pytestmark = pytest.mark.long
CLIENTS = 3
# What an answer takes with nothing beside it; beside others it takes twice as long, and more.
SHORT_S, LONG_S = 10, 60
_PROBE_TOKENS, _MOST_TOKENS = 100, 1900
# The first answer of each engine takes longer than those that follow.
_PROBES = 5


def tokens_in(length_s: float, envoy: Envoy) -> int:
    """Length of an answer that takes so long, by how quick this machine is."""
    with streaming(envoy.url("one"), SMALL_MODEL.name, clients=1, tokens=_PROBE_TOKENS) as probe:
        eventually(lambda: probe.whole >= _PROBES or probe.troubles, "answers to tell the pace by", 300)
    assert probe.troubles == []
    return min(_MOST_TOKENS, round(length_s * _PROBE_TOKENS / probe.shortest_s))


@contextmanager
def loaded(engines: Engines, envoy: Envoy, length_s: float) -> Iterator[Streams]:
    """From when each engine has a request under way; at the end those under way have ended, too."""
    tokens = tokens_in(length_s, envoy)
    with streaming(envoy.url("one"), SMALL_MODEL.name, clients=CLIENTS, tokens=tokens) as streams:
        eventually(lambda: all(engines.running().values()), "a request under way in each engine", 300)
        yield streams
    print(f"{streams.whole} streams of {tokens} tokens, {streams.longest_s:.0f} s at most")  # noqa: T201 - seen with -s


# A row takes minutes: each picker meets short answers in one test and long ones in the other.
def test_a_rollout(engines: Engines, envoy: Envoy) -> None:
    engines.scale(2)
    old = set(engines.ips()) | set(engines.ips("picker"))
    spec = engines.site.kubectl.json("get", "kvct", engines.name)["spec"]
    capacity = int(spec["tiers"]["cpu"]["capacity"].removesuffix("Mi")) - 16
    weights = {"queue": spec["router"]["weights"]["queue"] + 1}
    change = {"spec": {"tiers": {"cpu": {"capacity": f"{capacity}Mi"}}, "router": {"weights": weights}}}
    with loaded(engines, envoy, LONG_S if engines.kind == OURS else SHORT_S) as streams:
        engines.site.kubectl("patch", "kvct", engines.name, "--type=merge", f"--patch={json.dumps(change)}")
        engines.settle(2)
    assert streams.troubles == []
    assert not old & (set(engines.ips()) | set(engines.ips("picker"))), "all should have been replaced"


def test_fewer_engines(engines: Engines, envoy: Envoy) -> None:
    engines.scale(2)
    with loaded(engines, envoy, SHORT_S if engines.kind == OURS else LONG_S) as streams:
        engines.scale(1)
    assert streams.troubles == []
