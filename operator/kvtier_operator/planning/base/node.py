"""What the planner knows of a node of the cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.api.quantity import parse_quantity

CPU: Final = "cpu"
_MILLI: Final = 1000


@dataclass(frozen=True, slots=True)
class Taint:
    """A node's taint: pods that do not tolerate it stay away."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Node:
    """One node."""

    name: str  # its name
    labels: Mapping[str, str]  # its labels
    taints: tuple[Taint, ...]  # its taints
    # what its pods may request in all, whole numbers: bytes, counts, and millicores for `cpu`
    allocatable: Mapping[str, int]
    ready: bool  # whether its condition Ready is True
    schedulable: bool  # whether it takes new pods (not cordoned)


def node_from_object(node: Mapping[str, Any]) -> Node:
    """A node as the API server has it (v1 Node); what it does not say counts as nothing.

    Args:
        node: The object, as parsed from JSON.
    """
    metadata = node.get("metadata") or {}
    spec = node.get("spec") or {}
    status = node.get("status") or {}
    return Node(
        name=metadata.get("name", ""),
        labels=dict(metadata.get("labels") or {}),
        taints=tuple(
            Taint(taint.get("key", ""), taint.get("value", ""), taint.get("effect", ""))
            for taint in spec.get("taints") or ()
        ),
        allocatable={
            name: whole_number(name, quantity) for name, quantity in (status.get("allocatable") or {}).items()
        },
        ready=_is_ready(status.get("conditions") or ()),
        schedulable=not spec.get("unschedulable"),
    )


def whole_number(name: str, quantity: str | int, *, round_up: bool = False) -> int:
    """A quantity of resource `name` as a whole number: bytes, counts, and millicores for `cpu`.

    Args:
        name: The resource's name as in a pod.
        quantity: As written, such as `100Gi` or `500m`.
        round_up: Whether a fraction counts as one more, as it does in a request.

    Raises:
        ValueError: The text is not a quantity.
    """
    value = parse_quantity(quantity) * (_MILLI if name == CPU else 1)
    number = int(value)
    return number + (round_up and value > number)


def _is_ready(conditions: Iterable[Mapping[str, Any]]) -> bool:
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions
    )
