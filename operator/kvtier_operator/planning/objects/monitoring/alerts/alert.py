"""What an alert is made of."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert.

    Attributes:
        name: In CamelCase, with the kind in front.
        expr: PromQL; each series of its result is one alert.
        minutes: How long it must hold.
        severity: `warning` or `critical`.
        summary: What is wrong, after the resource's name.
        description: What was seen, and where to look.
    """

    name: str
    expr: str
    minutes: int
    severity: str
    summary: str
    description: str
