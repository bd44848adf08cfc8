"""Compute resources: what a resource's author asks for, over kvtier's own."""

from collections.abc import Mapping
from dataclasses import dataclass

from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.api.spec.pod import ResourceRequirements


@dataclass(frozen=True, slots=True)
class Compute:
    """Of one container.

    Attributes:
        requests: As quantities.
        limits: As quantities.
    """

    requests: Mapping[str, str]
    limits: Mapping[str, str]


def compute(own: Compute, asked: ResourceRequirements) -> Compute:
    """What is asked for stands; what is left open stays within it.

    A limit below kvtier's request lowers that, a request above kvtier's limit raises it. The API sees to it
    that the author's own two agree.
    """
    requests = {**own.requests, **{name: str(size) for name, size in asked.requests.items()}}
    limits = {**own.limits, **{name: str(size) for name, size in asked.limits.items()}}
    for name in requests.keys() & limits.keys():
        if parse_quantity(requests[name]) <= parse_quantity(limits[name]):
            continue
        if name in asked.requests:
            limits[name] = requests[name]
        else:
            requests[name] = limits[name]
    return Compute(requests, limits)
