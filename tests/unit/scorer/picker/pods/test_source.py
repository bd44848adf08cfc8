"""A list of pods that never changes, and pods that come and go."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_scorer.config.model import PickerConfigError
from kvtier_scorer.picker.pods.source import Endpoint, PodInstance, ReadyEndpoints, StaticPods


def test_addresses_are_taken_in_both_families() -> None:
    pods = StaticPods(["10.0.0.7:8000", " [FD00::7]:8001"])
    assert [endpoint.address for endpoint in pods._endpoints] == ["10.0.0.7:8000", "[fd00::7]:8001"]
    assert not pods.synced


@pytest.mark.parametrize(
    "addresses",
    [
        [],
        ["10.0.0.7"],
        ["10.0.0.7:"],
        ["10.0.0.7:http"],
        ["10.0.0.7:0"],
        ["10.0.0.7:65536"],
        ["vllm-0:8000"],
        ["fd00::7:8000"],
        [":8000"],
        ["http://10.0.0.7:8000"],
        ["10.0.0.7:8000", "10.0.0.7:8000"],
    ],
)
def test_what_is_no_address_is_refused_with_what_to_do(addresses: list[str]) -> None:
    with pytest.raises(PickerConfigError, match="pod"):
        StaticPods(addresses)


@dataclass
class Sink:
    """Holds what a sink must hold, and refuses what makes no sense."""

    here: dict[str, Endpoint] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def put(self, endpoint: Endpoint) -> None:
        assert endpoint.address not in self.here
        self.here[endpoint.address] = endpoint
        self.calls.append(f"+{endpoint.address}")

    def drop(self, address: str) -> None:
        del self.here[address]
        self.calls.append(f"-{address}")


def instance(identity: str, *addresses: str, name: str = "pod") -> PodInstance:
    return PodInstance(identity, [Endpoint(name, address, rank) for rank, address in enumerate(addresses)])


def test_only_differences_are_told() -> None:
    sink = Sink()
    endpoints = ReadyEndpoints(sink)
    endpoints.upsert("pod", instance("1", "a", "b"))
    endpoints.upsert("pod", instance("1", "a", "b"))
    assert sink.calls == ["+a", "+b"]
    endpoints.upsert("pod", instance("1", "b", "c"))
    assert sink.calls[2:] == ["-a", "+c"]
    endpoints.upsert("pod", PodInstance("", ()))
    endpoints.delete("pod")
    assert sink.calls[4:] == ["-b", "-c"]


def test_a_pod_that_started_anew_is_another_one() -> None:
    sink = Sink()
    endpoints = ReadyEndpoints(sink)
    endpoints.upsert("pod", instance("1", "a"))
    endpoints.upsert("pod", instance("2", "a"))
    assert sink.calls == ["+a", "-a", "+a"]


def test_the_end_of_a_pod_whose_address_another_one_has_changes_nothing() -> None:
    sink = Sink()
    endpoints = ReadyEndpoints(sink)
    endpoints.upsert("old", instance("1", "a", name="old"))
    endpoints.upsert("new", instance("2", "a", name="new"))
    endpoints.delete("old")
    assert sink.here == {"a": Endpoint("new", "a")}


def test_a_list_ends_those_that_are_not_in_it() -> None:
    sink = Sink()
    endpoints = ReadyEndpoints(sink)
    endpoints.upsert("one", instance("1", "a"))
    endpoints.upsert("two", instance("2", "b"))
    endpoints.replace(frozenset({"two", "three"}))
    assert sink.calls == ["+a", "+b", "-a"]


NAMES = st.sampled_from(["p", "q", "r"])
ADDRESSES = st.lists(st.sampled_from(["a", "b", "c"]), unique=True, max_size=2)


@given(st.lists(st.tuples(NAMES, st.sampled_from("12"), ADDRESSES)))
def test_whatever_is_seen_everybody_who_is_gone_leaves_nothing(
    seen: list[tuple[str, str, list[str]]],
) -> None:
    sink = Sink()
    endpoints = ReadyEndpoints(sink)
    for name, identity, addresses in seen:
        endpoints.upsert(name, instance(identity, *addresses, name=name))
        assert set(addresses) <= set(sink.here)
    endpoints.replace(frozenset())
    assert sink.here == {}
    assert endpoints._owners == {}
