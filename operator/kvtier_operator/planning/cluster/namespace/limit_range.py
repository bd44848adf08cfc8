"""LimitRanges: what they set in a pod that says nothing, and what they refuse.

Source of what is refused: k8s.io/kubernetes, plugin/pkg/admission/limitranger/admission.go.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.planning.cluster.nodes.node import whole
from kvtier_operator.planning.cluster.nodes.pod_needs import container_limits, container_requests
from kvtier_operator.planning.cluster.nodes.shortage import amount

CONTAINER, POD, CLAIM = "Container", "Pod", "PersistentVolumeClaim"
_SIDES: Final = (("requests", "defaultRequest"), ("limits", "default"))
Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Limit:
    """What a LimitRange says of one type of object.

    Attributes:
        type: Container, Pod or PersistentVolumeClaim.
        least: The least that one requests, by resource.
        most: The most that its limit may be.
        ratio: How many times its request its limit may be.
        defaults: Requests and limits of a container that sets none, as quantities.
    """

    type: str
    least: Amounts
    most: Amounts
    ratio: Mapping[str, Decimal]
    defaults: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class LimitRange:
    """A LimitRange of a namespace."""

    name: str
    limits: tuple[Limit, ...]

    def of(self, type_: str) -> Iterator[Limit]:
        """What it says of one type."""
        return (each for each in self.limits if each.type == type_)


def limit_range_from_object(document: Mapping[str, Any]) -> LimitRange:
    """A LimitRange as the API server has it (v1), where a maximum is a default too."""
    return LimitRange(
        document["metadata"]["name"],
        tuple(
            Limit(
                type=each["type"],
                least=_amounts(each.get("min")),
                most=_amounts(each.get("max")),
                ratio={
                    name: parse_quantity(value)
                    for name, value in (each.get("maxLimitRequestRatio") or {}).items()
                },
                defaults={side: dict(each.get(default) or {}) for side, default in _SIDES},
            )
            for each in document["spec"]["limits"]
        ),
    )


def admitted(pod: Mapping[str, Any], ranges: Iterable[LimitRange]) -> dict[str, Any]:
    """A pod's spec with what the LimitRanges set in its containers."""
    defaults = [each.defaults for one in ranges for each in one.of(CONTAINER)]
    changed = {
        key: [_with_defaults(container, defaults) for container in pod.get(key, ())]
        for key in ("initContainers", "containers")
    }
    return {**pod, **changed}


def container_faults(limit: Limit, container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a limit of type Container refuses of a container as admitted, as `faults`.

    A default that does not suit what the container says itself makes a pod that no API server takes.
    """
    requests, limits = container_requests(container), container_limits(container)
    refused = [*faults(limit, requests, limits)]
    yield from refused
    known = {name for name, _ in refused}
    for name in sorted(set().union(*limit.defaults.values()) - known):
        request, most = requests.get(name, 0), limits.get(name)
        if most is not None and most < request:
            yield (
                name,
                f"gets a limit of {amount(name, most)} {name}, below its request of {amount(name, request)}",
            )
        elif _is_whole(name) and most != request:
            yield name, f"gets a request of {amount(name, request)} {name}, which must be its limit"


def _is_whole(name: str) -> bool:
    """Devices and huge pages, of which a request is a limit."""
    return "/" in name or name.startswith("hugepages-")


def faults(limit: Limit, requests: Amounts, limits: Amounts) -> Iterator[tuple[str, str]]:
    """Resources that a limit refuses, each with what is wrong in words that follow what it is wrong of."""
    yield from _too_little(limit.least, requests, limits)
    yield from _too_much(limit, requests, limits)
    yield from _too_far_apart(limit.ratio, requests, limits)


def _too_little(least: Amounts, requests: Amounts, limits: Amounts) -> Iterator[tuple[str, str]]:
    for name, bound in least.items():
        if (value := requests.get(name)) is None or value < bound:
            yield name, f"requests {_in_words(name, value)}, at least {amount(name, bound)} wanted"
        elif name in limits and limits[name] < bound:
            yield (
                name,
                f"has a limit of {_in_words(name, limits[name])}, at least {amount(name, bound)} wanted",
            )


def _too_much(limit: Limit, requests: Amounts, limits: Amounts) -> Iterator[tuple[str, str]]:
    for name, bound in limit.most.items():
        if limit.type != CLAIM and name not in limits:
            yield name, f"has no limit of {name}, at most {amount(name, bound)} allowed"
        elif limits.get(name, 0) > bound:
            yield (
                name,
                f"has a limit of {_in_words(name, limits[name])}, at most {amount(name, bound)} allowed",
            )
        elif requests.get(name, 0) > bound:
            yield name, f"requests {_in_words(name, requests[name])}, at most {amount(name, bound)} allowed"


def _too_far_apart(
    ratios: Mapping[str, Decimal], requests: Amounts, limits: Amounts
) -> Iterator[tuple[str, str]]:
    for name, ratio in ratios.items():
        request, most = requests.get(name, 0), limits.get(name, 0)
        if not request or not most:
            side = "limit" if request else "request"
            yield name, f"has no {side} of {name}, and its limit may be {ratio} times its request"
        elif most > request * ratio:
            both = f"a limit of {_in_words(name, most)} over a request of {_in_words(name, request)}"
            yield name, f"has {both}, at most {ratio} times allowed"


def _in_words(name: str, value: int | None) -> str:
    return f"no {name}" if value is None else f"{amount(name, value)} {name}"


def _with_defaults(
    container: Mapping[str, Any], defaults: Iterable[Mapping[str, Mapping[str, str]]]
) -> dict[str, Any]:
    given = container.get("resources", {})
    limits = dict(given.get("limits", {}))
    sides = {"limits": limits, "requests": {**limits, **given.get("requests", {})}}
    for each in defaults:
        for side, values in sides.items():
            sides[side] = {**each[side], **values}
    return {**container, "resources": sides}


def _amounts(quantities: Mapping[str, str] | None) -> dict[str, int]:
    return {name: whole(name, value, round_up=True) for name, value in (quantities or {}).items()}
