"""The engine of these cases takes 2 GPUs, 13.1 GiB of memory and, in pages of 2 MiB, 100 GiB."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from tests.cases.nodes import GIB, node
from tests.cases.planning import resource

from kvtier_operator.planning.base.node import Node, Taint
from kvtier_operator.planning.cluster.nodes_fit import NodesFit, nodes_fit
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan

ON_ORDINARY_PAGES = {"cpu": {"capacity": "2000Gi"}}


def plan(**spec: Any) -> Plan:  # noqa: ANN401 - as in YAML
    cpu = {"capacity": "100Gi", "hugepages": {"policy": "Require"}}
    engine = {"tensorParallelSize": 2} | dict(spec.pop("engine", {}))
    tiers = {"cpu": cpu} | spec.pop("tiers", {})
    return make_plan(resource(engine=engine, tiers=tiers, **({"replicas": 4} | spec)), Observed())


def fit(*nodes: Node, **spec: object) -> NodesFit:
    found = nodes_fit(plan(**spec), nodes)
    assert "\n" not in found.message
    return found


def test_enough_nodes() -> None:
    found = fit(node("a"), node("b"), node("c", ready=False))
    assert found == NodesFit(
        fits=True,
        matching_nodes=2,
        fitting_nodes=2,
        replicas_that_fit=4,
        reason="EnoughNodes",
        message="room for 4 engines, 4 wanted (nodes: 3, matching 2, with room 2); one takes 2 "
        "nvidia.com/gpu, 13.10 GiB memory, 100 GiB hugepages-2Mi, 68.13 GiB ephemeral-storage; other pods "
        "are not counted",
    )


def test_room_for_the_one_more_of_a_rollout() -> None:
    surge = {"rollout": {"strategy": "Surge"}}
    enough = fit(node("a"), node("b"), replicas=3, engine=surge)
    assert enough.fits
    assert enough.message.startswith("room for 4 engines, 3 wanted and one more in a rollout (")
    full = fit(node("a"), node("b"), engine=surge)
    assert not full.fits
    assert "Set spec.engine.rollout.strategy to InPlace, reserve 22,528 more" in full.message
    assert "lower spec.replicas to 3 or" in full.message
    assert "in a rollout" not in fit(node("a"), node("b"), replicas=0, engine=surge).message


def test_pages_that_a_node_s_kernel_does_not_have() -> None:
    huge = {"cpu": {"capacity": "100Gi", "hugepages": {"policy": "Require", "pageSize": "1Gi"}}}
    arm = node(allocatable={"hugepages-2Mi": 0, "hugepages-512Mi": 0, "hugepages-16Gi": 0})
    found = fit(arm, tiers=huge)
    assert found.reason == "InsufficientHugepages"
    assert "Set spec.tiers.cpu.hugepages.pageSize to 2Mi, 512Mi or 16Gi, which its kernel" in found.message
    assert "nr_hugepages" in fit(node(allocatable={"hugepages-1Gi": 0}), tiers=huge).message


@pytest.mark.parametrize(
    ("allocatable", "reason", "words"),
    [
        (
            {"hugepages-2Mi": 64 * GIB},
            "InsufficientHugepages",
            (
                "The node closest to holding one more has 64 GiB of hugepages-2Mi allocatable, 100 GiB "
                "needed. Reserve 18,432 more pages of 2 MiB there (nr_hugepages, then restart its kubelet), "
                "lower spec.tiers.cpu.capacity or add nodes"
            ),
        ),
        ({"nvidia.com/gpu": 0}, "InsufficientGPUs", "See that nvidia.com/gpu's device plugin runs there"),
        (
            {"nvidia.com/gpu": 1},
            "InsufficientGPUs",
            "has 1 of nvidia.com/gpu allocatable, 2 needed. Lower spec.engine.tensorParallelSize",
        ),
        (
            {"memory": 10 * GIB},
            "InsufficientMemory",
            "has 10 GiB of memory allocatable, 13.10 GiB needed. Use nodes with more memory",
        ),
        ({"pods": 0}, "TooManyPods", "has 0 of pods allocatable, 1 needed"),
        (
            {"memory": 0, "hugepages-2Mi": 0},
            "InsufficientHugepages",
            "0 B of hugepages-2Mi allocatable, 100 GiB needed; it also lacks memory",
        ),
    ],
)
def test_the_first_thing_that_is_missing(allocatable: dict[str, int], reason: str, words: str) -> None:
    found = fit(node(allocatable=allocatable))
    assert (found.fits, found.matching_nodes, found.replicas_that_fit) == (False, 1, 0)
    assert found.reason == reason
    assert words in found.message


@pytest.mark.parametrize(
    ("more", "reason", "words"),
    [
        (
            {"engine": {"resources": {"requests": {"cpu": "200"}}}},
            "InsufficientCPU",
            "has 128 of cpu allocatable, 200 needed. Lower spec.engine.resources.requests.cpu by 72",
        ),
        (
            {"engine": {"resources": {"requests": {"ephemeral-storage": "9Ti"}}}},
            "InsufficientEphemeralStorage",
            "9 TiB needed. Lower spec.engine.resources.requests.ephemeral-storage by 1 TiB, use nodes with",
        ),
        (
            {"tiers": {"disk": {"capacity": "8Ti", "volume": {"emptyDir": {}}}}},
            "InsufficientEphemeralStorage",
            (
                " Lower spec.tiers.disk.capacity by 887.33 GiB, use another spec.tiers.disk.volume than "
                "emptyDir, keep the weights on another spec.model.volume than emptyDir, use nodes with a "
            ),
        ),
        (
            {"model_source": {"source": "oci://registry.example/qwen3:1", "weights": "9Ti"}},
            "InsufficientEphemeralStorage",
            "Take the weights from a claim: pvc://CLAIM in spec.model.source, use nodes with a larger disk",
        ),
        ({"tiers": ON_ORDINARY_PAGES}, "InsufficientMemory", "Lower spec.tiers.cpu.capacity by 989.11 GiB"),
        (
            {"engine": {"resources": {"limits": {"nvidia.com/gpu": 9}}}},
            "InsufficientGPUs",
            "9 needed. Ask for fewer nvidia.com/gpu in spec.engine.resources, use nodes with more of them",
        ),
        (
            {"engine": {"dataParallelSize": 5}},
            "InsufficientGPUs",
            "Lower spec.engine.tensorParallelSize or spec.engine.dataParallelSize, use nodes",
        ),
        (
            {"engine": {"resources": {"limits": {"example.com/fpga": 1}}}},
            "InsufficientDevices",
            "See that example.com/fpga's device plugin runs there",
        ),
    ],
)
def test_what_the_resource_asks_for_itself(more: dict[str, object], reason: str, words: str) -> None:
    found = fit(node(), **more)
    assert found.reason == reason
    assert words in found.message


def test_some_fit() -> None:
    found = fit(node("a"), node("b", allocatable={"hugepages-2Mi": 0}))
    assert (found.fits, found.fitting_nodes, found.replicas_that_fit) == (False, 1, 2)
    assert "room for 2 engines, 4 wanted (nodes: 2, matching 2, with room 1)" in found.message
    assert (
        "The node closest to holding one more has 56 GiB of hugepages-2Mi left beside 2 engines"
        in found.message
    )
    assert "lower spec.replicas to 2 or add nodes" in found.message


def test_one_engine_a_node() -> None:
    like = {"matchLabels": {"app.kubernetes.io/component": "engine"}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": like}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    found = fit(node(), replicas=2, engine={"affinity": anti})
    assert (found.replicas_that_fit, found.reason) == (1, "AntiAffinity")
    assert "holds the one engine that the pods' required anti-affinity allows a node" in found.message


def test_a_servers_memory_and_pages_count() -> None:
    one = plan(backend="LMCacheMP", replicas=1)
    assert not nodes_fit(one, [node(allocatable={"memory": 17 * GIB})]).fits
    assert not nodes_fit(one, [node(allocatable={"hugepages-2Mi": 99 * GIB})]).fits
    assert nodes_fit(one, [node(allocatable={"memory": 19 * GIB, "hugepages-2Mi": 100 * GIB})]).fits


@pytest.mark.parametrize("device", ["nvidia.com/mig-3g.40gb", "habana.ai/gaudi", "amd.com/gpu"])
def test_devices_of_any_kind_are_counted(device: str) -> None:
    engine = {"tensorParallelSize": 1, "resources": {"limits": {device: 1}}}
    found = fit(node(allocatable={device: 2}), engine=engine, replicas=2)
    assert (found.reason, found.replicas_that_fit) == ("EnoughNodes", 2)
    assert f"one takes 1 {device}, " in found.message
    found = fit(node(), engine=engine)
    assert found.reason == ("InsufficientGPUs" if "gpu" in device else "InsufficientDevices")
    assert f"{device}'s device plugin" in found.message


@pytest.mark.parametrize("replicas", [1, 400])
def test_devices_that_are_claimed_are_the_schedulers(replicas: int) -> None:
    claims = [{"name": "gpus", "resourceClaimTemplateName": "two-h100"}]
    found = fit(node(allocatable={"nvidia.com/gpu": 0}), engine={"resourceClaims": claims}, replicas=replicas)
    assert found.reason == ("EnoughNodes" if replicas == 1 else "InsufficientHugepages")
    assert found.message.endswith(
        ". Devices claimed by resourceClaims (gpus) cannot be counted: the scheduler allocates them"
    )


def test_no_nodes() -> None:
    assert fit().reason == "NoNodes"
    assert "add nodes" in fit().message


def test_no_matching_nodes_and_what_keeps_the_pods_away() -> None:
    nodes = [node(f"plain-{number}") for number in range(5)]
    labels = {"gpu": "h100"}
    nodes += [
        node("tainted", labels=labels, taints=(Taint("team", "a", "NoSchedule"),)),
        node("down", labels=labels, ready=False),
        node("cordoned", labels=labels, schedulable=False),
    ]
    found = fit(*nodes, engine={"nodeSelector": {"gpu": "h100"}})
    assert (found.reason, found.matching_nodes, found.replicas_that_fit) == ("NoMatchingNodes", 0, 0)
    assert found.message == (
        "room for 0 engines, 4 wanted (nodes: 8, matching 0, with room 0). Not matching: 5 without label "
        "gpu=h100 (see spec.engine.nodeSelector), 1 cordoned (see spec.engine.tolerations), 1 not Ready "
        "and 1 other reason"
    )


def test_a_reader_of_the_resource_learns_no_name_label_or_taint_of_a_node() -> None:
    labels, taints = {"team": "acme"}, (Taint("acme", "gold", "NoSchedule"),)
    away = fit(node("acme-1", labels=labels, taints=taints), node("acme-2", labels=labels, ready=False))
    short = fit(node("acme-3", allocatable={"memory": 0}), node("acme-1", labels=labels, taints=taints))
    assert (away.reason, short.reason) == ("NoMatchingNodes", "InsufficientMemory")
    assert not [word for word in ("acme", "gold") if word in away.message + short.message]
    assert (
        "1 with a taint of effect NoSchedule that is not tolerated (see spec.engine.tolerations)"
        in away.message
    )


def test_nothing_wanted_fits_anywhere() -> None:
    assert fit(replicas=0).fits
    assert fit(node(allocatable={"memory": 0}), replicas=0).fits


AMOUNTS = st.fixed_dictionaries(
    {
        "memory": st.integers(0, 60 * GIB),
        "hugepages-2Mi": st.integers(0, 400 * GIB),
        "nvidia.com/gpu": st.integers(0, 9),
        "pods": st.integers(0, 4),
    }
)
WANTED = plan()


@settings(max_examples=100)
@given(has=st.lists(AMOUNTS, max_size=4), more=AMOUNTS, at=st.integers(0, 3))
def test_more_allocatable_never_fits_fewer(has: list[dict[str, int]], more: dict[str, int], at: int) -> None:
    larger = [
        {name: number + (more[name] if place == at else 0) for name, number in each.items()}
        for place, each in enumerate(has)
    ]
    before, after = (
        nodes_fit(WANTED, [node(f"n{place}", allocatable=each) for place, each in enumerate(nodes)])
        for nodes in (has, larger)
    )
    assert after.replicas_that_fit >= before.replicas_that_fit
    assert after.fitting_nodes >= before.fitting_nodes
    assert after.fits >= before.fits
    assert before.fits == (before.reason == "EnoughNodes")


NAMES = [
    "nodeAffinity",
    "podAntiAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
    "matchExpressions",
    "labelSelector",
    "matchLabels",
    "key",
    "operator",
    "values",
]
SCALARS = st.none() | st.booleans() | st.integers() | st.sampled_from(["", "In", "Gt", "NotIn", "x"])
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=100)
@given(parts=st.dictionaries(st.sampled_from(NAMES[:2]), JSON), keyed=st.booleans())
def test_an_affinity_of_any_shape_is_judged(parts: dict[str, object], *, keyed: bool) -> None:
    affinity = {name: {NAMES[2]: each} if keyed else each for name, each in parts.items()}
    found = fit(node(), replicas=1, engine={"affinity": affinity})
    assert found.fits or found.reason in {"NoMatchingNodes", "AntiAffinity"}


def test_what_a_template_adds_to_the_pod_is_counted() -> None:
    resources = {"requests": {"memory": "40Gi", "cpu": "500m"}, "limits": {"nvidia.com/gpu": "1"}}
    more = {"name": "more", "image": "a/b:1", "resources": resources}
    template = {"spec": {"containers": [more], "nodeSelector": {"pool": "x"}}}
    found = fit(node("a", labels={"pool": "x"}), node("b"), engine={"podTemplate": template})
    assert found.matching_nodes == 1
    assert "without label pool=x" in found.message
    room = fit(node("a", labels={"pool": "x"}), replicas=1, engine={"podTemplate": template})
    assert "one takes 3 nvidia.com/gpu, 53.10 GiB memory" in room.message


@pytest.mark.parametrize(
    ("bounds", "fits", "words"),
    [
        ({"minReplicas": 2, "maxReplicas": 4}, True, "room for 4 engines, 2 to 4 wanted (nodes"),
        ({"minReplicas": 2, "maxReplicas": 9}, True, "; beyond 4 the autoscaler needs more nodes; one takes"),
        ({"minReplicas": 4, "maxReplicas": 4}, True, "room for 4 engines, 4 wanted (nodes"),
        ({"minReplicas": 5, "maxReplicas": 9}, False, "lower spec.autoscaling.minReplicas to 4 or add nodes"),
    ],
)
def test_of_an_autoscaler_the_least_have_to_fit(bounds: dict[str, int], words: str, *, fits: bool) -> None:
    found = fit(node("a"), node("b"), replicas=1, autoscaling=bounds)
    assert (found.fits, words in found.message) == (fits, True)


def with_store(*nodes: Node, shards: int = 1, **spec: object) -> NodesFit:
    """A store of 100 GiB, 111.2 with what its one server needs, and four cores."""
    remote = {"capacity": "100Gi", "managed": {"shards": shards}, "connections": 2}
    return fit(*nodes, tiers={"remote": remote}, **spec)


def test_a_store_goes_where_it_costs_no_engine() -> None:
    small, large = node("a", allocatable={"memory": 120 * GIB}), node("b")
    found = with_store(small, large)
    assert (found.fits, found.replicas_that_fit) == (True, 4)
    assert "room for 4 engines beside the store, 4 wanted" in found.message
    away = node("c", labels={"pool": "caches"}, allocatable={"nvidia.com/gpu": 0})
    assert with_store(small, away, replicas=2).replicas_that_fit == 2


def test_a_store_takes_room_from_engines() -> None:
    one = node(allocatable={"memory": 130 * GIB})
    assert fit(one, replicas=2).replicas_that_fit == 2
    found = with_store(one, replicas=2)
    assert (found.fits, found.replicas_that_fit, found.reason) == (False, 1, "InsufficientMemory")


def test_each_shard_of_a_store_takes_room() -> None:
    """Of 55.9 GiB each."""
    one = node("a", allocatable={"memory": 130 * GIB})
    assert with_store(one, shards=2, replicas=1).replicas_that_fit == 1
    found = with_store(node("a", allocatable={"memory": 60 * GIB}), shards=2, replicas=0)
    assert (found.fits, found.reason) == (False, "NoRoomForStore")
    assert "No node has room for 2 of the store's 2 shards: the closest has 4.1" in found.message
    two = [node(name, allocatable={"memory": 60 * GIB}) for name in "ab"]
    assert with_store(*two, shards=2, replicas=0).fits


def test_a_store_without_room() -> None:
    found = with_store(node(allocatable={"memory": 80 * GIB}), replicas=1)
    assert (found.fits, found.replicas_that_fit, found.reason) == (False, 2, "NoRoomForStore")
    assert "No node has room for the store: the closest has 80 GiB of memory allocatable" in found.message
    assert "Lower spec.tiers.remote.capacity, raise spec.tiers.remote.managed.shards or" in found.message
    found = with_store(node(), replicas=1, router={"nodeSelector": {"pool": "caches"}})
    assert found.reason == "NoRoomForStore"
    assert "1 without label pool=caches (see spec.router.nodeSelector)" in found.message


def test_cores_of_the_engines_processes() -> None:
    found = fit(node(allocatable={"cpu": 3500}))
    assert found.reason == "InsufficientCPU"
    assert "Set spec.engine.resources.requests.cpu to less than the planned 4 " in found.message
