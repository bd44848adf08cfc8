"""Which pods of a pool requests may go to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_scorer.picker.pods.cluster import MalformedObjectError, Pool, pod_instance, pool_of
from kvtier_scorer.picker.pods.source import Endpoint

POOL = {"spec": {"selector": {"matchLabels": {"b": "2", "a": "1"}}, "targetPorts": [{"number": 8000}]}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "status", "spec", "selector", "matchLabels", "conditions", "podIP", "type"]
            ),
            inner,
            max_size=3,
        )
    ),
)


def pod(**changes: object) -> dict[str, Any]:
    """A ready pod, with changes of its status."""
    status = {
        "podIP": "10.0.0.7",
        "conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"}],
        "containerStatuses": [{"containerID": "containerd://one"}],
    }
    return {"metadata": {"name": "vllm-0", "uid": "u"}, "status": status | changes}


def test_a_pool_is_its_labels_and_ports() -> None:
    pool = pool_of(POOL)
    assert pool == Pool({"a": "1", "b": "2"}, [8000])
    assert pool.selector == "a=1,b=2"


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"selector": {}, "targetPorts": [{"number": 1}]},
        {"selector": {"matchLabels": {}}, "targetPorts": [{"number": 1}]},
        {"selector": {"matchLabels": {"a": 1}}, "targetPorts": [{"number": 1}]},
        {"selector": {"matchLabels": {"a": "1"}}},
        {"selector": {"matchLabels": {"a": "1"}}, "targetPorts": [{"port": 1}]},
        {"selector": None, "targetPorts": 5},
    ],
)
def test_a_pool_without_labels_or_ports_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(MalformedObjectError, match="spec"):
        pool_of({"spec": spec})


def test_a_ready_pod_has_a_server_for_each_port() -> None:
    assert pod_instance(pod(), [8000, 8001]).endpoints == [
        Endpoint("vllm-0", "10.0.0.7:8000", 0),
        Endpoint("vllm-0", "10.0.0.7:8001", 1),
    ]
    assert pod_instance(pod(podIP="fd00::7"), [80]).endpoints == [Endpoint("vllm-0", "[fd00::7]:80")]


@pytest.mark.parametrize(
    "document",
    [
        pod(conditions=[{"type": "Ready", "status": "False"}]),
        pod(conditions=[{"type": "ContainersReady", "status": "True"}]),
        pod(conditions=None),
        pod(podIP=None),
        pod(podIP=""),
        pod(podIP="not an address"),
        pod() | {"metadata": {"name": "x", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {},
    ],
)
def test_a_pod_that_is_not_ready_or_is_leaving_has_none(document: dict[str, Any]) -> None:
    assert pod_instance(document, [8000]).endpoints == ()


def test_a_container_that_started_anew_is_another_life() -> None:
    again = pod(containerStatuses=[{"containerID": "containerd://two"}])
    assert pod_instance(pod(), [80]).identity != pod_instance(again, [80]).identity
    assert pod_instance(pod(), [80]).identity == pod_instance(pod(phase="Running"), [80]).identity


@given(st.dictionaries(st.sampled_from(["metadata", "status", "spec"]), JSON))
def test_garbage_is_no_pod_and_no_pool(document: dict[str, Any]) -> None:
    pod_instance(document, [80])
    with pytest.raises(MalformedObjectError):
        pool_of(document)
