"""Whatever somebody writes into a status, the operator does what the spec says and writes its own again."""

import copy
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.operator.reconcile.model_cluster.cluster import KEY, RESOURCE, Cluster

_QUIET_S: Final = 5.0
_LARGEST: Final = (1 << 63) - 1
_SIZES: Final = st.none() | st.integers(-(1 << 63), _LARGEST)
_TEXT: Final = st.text(max_size=20) | st.sampled_from(["\x1b]0;x\x07", "http://elsewhere", "a" * 32_768])
_REASONS: Final = st.sampled_from(["NamespaceTerminating", "RoundFailed", "Valid", "X"])


def _some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the fields, as JSON has them: none is null."""
    present = {name: value.filter(lambda each: each is not None) for name, value in fields.items()}
    return st.fixed_dictionaries({}, optional=present)


_TIER: Final = _some(
    bytes=_SIZES,
    tokens=_SIZES | st.integers(400_000, 900_000),
    source=st.sampled_from(["Planned", "Observed"]),
    blockTokens=_SIZES,
    pinnedBytes=_SIZES,
    pays=st.booleans(),
)
_CONDITION: Final = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["Ready", "Accepted", "EnginesReady", "Another"]) | _TEXT,
        "status": st.sampled_from(["True", "False", "Unknown"]),
        "reason": _REASONS,
        "message": _TEXT,
        "lastTransitionTime": st.just("2000-01-01T00:00:00Z"),
    }
)
STATUSES: Final = _some(
    observedGeneration=st.integers(0, 3),
    replicas=st.integers(0, _LARGEST),
    readyReplicas=st.integers(0, _LARGEST),
    selector=_TEXT,
    tiers=_some(gpu=_TIER, cpu=_TIER, disk=_TIER),
    router=_some(
        entries=_some(gpuPrefix=_SIZES, cpuPrefix=_SIZES),
        tokensPerEntry=_SIZES,
        configHash=_TEXT,
        url=_TEXT,
    ),
    conditions=st.lists(_CONDITION, max_size=8, unique_by=lambda condition: condition["type"]),
)
LARGE: Final = {
    "conditions": [
        {
            "type": f"{number}",
            "status": "True",
            "reason": "X",
            "message": "x" * 32_768,
            "lastTransitionTime": "2000-01-01T00:00:00Z",
        }
        for number in range(40)
    ]
}


def told(cluster: Cluster) -> dict[str, Any]:
    """The status without the times of its conditions."""
    status: dict[str, Any] = copy.deepcopy(cluster.server.objects[RESOURCE].get("status", {}))
    for condition in status.get("conditions", ()):
        del condition["lastTransitionTime"]
    return status


def lie(cluster: Cluster, status: Mapping[str, Any]) -> None:
    cluster.server.put(RESOURCE, {**cluster.server.objects[RESOURCE], "status": status})


def settled() -> tuple[Cluster, dict[str, Any]]:
    """A cluster, and its resource's status."""
    cluster = Cluster()
    cluster.calm(_QUIET_S)
    return cluster, told(cluster)


@settings(deadline=None, max_examples=15)
@given(STATUSES)
def test_a_running_operator_takes_its_status_back_in_one_write(status: Mapping[str, Any]) -> None:
    cluster, honest = settled()
    with closing(cluster):
        before = len(cluster.api.writes)
        lie(cluster, status)
        cluster.calm(_QUIET_S)
        assert told(cluster) == honest
        written = cluster.api.writes[before:]
        assert len([each for each in written if "event" not in each.path]) <= 1, written
        assert not cluster.drifted()


@settings(deadline=None, max_examples=15)
@given(STATUSES)
def test_an_operator_that_starts_is_not_misled(status: Mapping[str, Any]) -> None:
    cluster, honest = settled()
    with closing(cluster):
        cluster.stop()
        lie(cluster, status)
        cluster.start()
        cluster.calm(_QUIET_S)
        assert cluster.is_running
        now = told(cluster)
        assert now.pop("conditions") == [*honest["conditions"]]
        assert now.keys() == honest.keys() - {"conditions"}
        assert now["selector"] == honest["selector"]


def test_what_is_deleted_is_made_again_whatever_the_status_said() -> None:
    cluster, honest = settled()
    with closing(cluster):
        cluster.stop()
        stuck = copy.deepcopy(honest["conditions"])
        for each in stuck:
            each |= {"reason": "NamespaceTerminating", "lastTransitionTime": "2000-01-01T00:00:00Z"}
        lie(cluster, {**honest, "conditions": stuck})
        gone = cluster.live_objects()[0]
        cluster.server.delete(gone)
        cluster.start()
        cluster.calm(_QUIET_S)
        assert gone in cluster.server.objects
        assert told(cluster) == honest


@pytest.mark.parametrize("is_running", [True, False])
def test_a_status_of_more_than_the_operator_would_write_is_not_kept(*, is_running: bool) -> None:
    cluster, honest = settled()
    with closing(cluster):
        if not is_running:
            cluster.stop()
        lie(cluster, LARGE)
        if not is_running:
            cluster.start()
        cluster.tell_resource(most=1)
        resource = cluster._controller.resources.get(KEY)
        assert resource
        assert len(resource.status) < len(str(LARGE)) // 4
        cluster.calm(_QUIET_S)
        assert told(cluster) == honest
