"""Kubernetes' requirements on labels, in text that no API server has validated yet."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector (matchLabels, matchExpressions) takes these labels; an empty one takes all."""
    wanted = mapping(selector.get("matchLabels"))
    return all(labels.get(name) == value for name, value in wanted.items()) and all(
        requirement_holds(requirement, labels) for requirement in mappings(selector.get("matchExpressions"))
    )


def requirement_holds(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Source: k8s.io/apimachinery/pkg/labels, Requirement.Matches; what is no requirement does not hold."""
    value = labels.get(str(requirement.get("key")))
    operand = requirement.get("values")
    values = operand if isinstance(operand, frozenset) else _texts(operand)
    match requirement.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _compares(operator, value, values)
    return False


def with_values_at_hand(requirement: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same requirement, quick to ask of thousands of labels."""
    if requirement.get("operator") not in ("In", "NotIn"):
        return requirement
    return {**requirement, "values": frozenset(_texts(requirement.get("values")))}


def mapping(value: object) -> Mapping[str, Any]:
    """The value where it is a mapping, an empty one otherwise."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> Iterable[Mapping[str, Any]]:
    """The mappings of a list; none where the value is no list."""
    return (item for item in value if isinstance(item, Mapping)) if isinstance(value, list) else ()


def _texts(values: object) -> list[str]:
    return [str(value) for value in values] if isinstance(values, list) else []


def _compares(operator: str, value: str | None, values: Collection[str]) -> bool:
    try:
        [bound] = values
        number, limit = int(value or ""), int(bound)
    except ValueError:
        return False
    return number > limit if operator == "Gt" else number < limit
