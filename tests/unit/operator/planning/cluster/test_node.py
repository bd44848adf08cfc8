import pytest

from kvtier_operator.planning.base.node import Node, Taint, node_from_object, whole_number


def test_a_node_of_an_api_server() -> None:
    parsed = node_from_object(
        {
            "metadata": {"name": "gpu-1", "labels": {"zone": "a"}},
            "spec": {
                "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
                "unschedulable": True,
            },
            "status": {
                "allocatable": {
                    "cpu": "63500m",
                    "memory": "1056535104Ki",
                    "hugepages-2Mi": "128Gi",
                    "hugepages-1Gi": "0",
                    "ephemeral-storage": "959786032911",
                    "nvidia.com/gpu": "8",
                    "pods": "110",
                },
                "conditions": [
                    {"type": "MemoryPressure", "status": "False"},
                    {"type": "Ready", "status": "True"},
                ],
            },
        }
    )
    assert parsed == Node(
        name="gpu-1",
        labels={"zone": "a"},
        taints=(Taint("nvidia.com/gpu", "", "NoSchedule"),),
        allocatable={
            "cpu": 63_500,
            "memory": 1_056_535_104 * 1024,
            "hugepages-2Mi": 128 << 30,
            "hugepages-1Gi": 0,
            "ephemeral-storage": 959_786_032_911,
            "nvidia.com/gpu": 8,
            "pods": 110,
        },
        ready=True,
        schedulable=False,
    )


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_ready_is_only_what_says_so(status: str) -> None:
    node = {"metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": status}]}}
    assert not node_from_object(node).ready


def test_a_node_that_has_just_registered() -> None:
    assert node_from_object(
        {"metadata": {"name": "new", "labels": None}, "spec": {}, "status": None}
    ) == Node("new", {}, (), {}, ready=False, schedulable=True)


@pytest.mark.parametrize(
    ("name", "quantity", "down", "up"),
    [
        ("cpu", "2", 2000, 2000),
        ("cpu", "100u", 0, 1),
        ("memory", "1.5Gi", 3 << 29, 3 << 29),
        ("memory", "1500m", 1, 2),
        ("nvidia.com/gpu", 8, 8, 8),
    ],
)
def test_what_a_node_has_is_rounded_down_and_what_a_pod_asks_for_up(
    name: str, quantity: str | int, down: int, up: int
) -> None:
    assert (whole_number(name, quantity), whole_number(name, quantity, round_up=True)) == (down, up)
