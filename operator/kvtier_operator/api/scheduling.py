"""Where pods run, and with what: the same fields for engines and pickers."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from kvtier_operator.api.base import ApiModel, rule
from kvtier_operator.api.quantity import Quantity, parse_quantity


class TolerationOperator(StrEnum):
    """How a toleration's key and value are compared with a taint's."""

    EXISTS = "Exists"
    EQUAL = "Equal"


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Toleration(ApiModel):
    """A taint that pods tolerate, as in a pod."""

    key: str | None = Field(
        None, description="Taint key; all keys when empty (operator Exists only).", max_length=316
    )
    operator: TolerationOperator | None = Field(None, description="Exists or Equal; Equal when empty.")
    value: str | None = Field(None, description="Taint value, with Equal.", max_length=63)
    effect: TaintEffect | None = Field(None, description="Effect to tolerate; all effects when empty.")
    toleration_seconds: int | None = Field(
        None,
        description="How long a NoExecute taint is tolerated, in seconds; for ever when empty.",
        ge=-(2**31),
        le=2**31 - 1,
    )

    @rule(
        "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
        "a toleration without key must have operator Exists",
    )
    def has_key_or_exists(self) -> bool:
        """Kubernetes' own rule for pods, said before there is a pod."""
        return self.key is not None or self.operator is TolerationOperator.EXISTS

    @rule(
        "!has(self.value) || !has(self.operator) || self.operator == 'Equal'",
        "a toleration with operator Exists has no value",
    )
    def value_means_equal(self) -> bool:
        """Kubernetes' own rule for pods."""
        return self.value is None or self.operator is not TolerationOperator.EXISTS


class ResourceRequirements(ApiModel):
    """Compute resources that a resource's author asks for."""

    requests: dict[str, Quantity] = Field(
        default_factory=dict, description="Requests, as in a pod.", max_length=32
    )
    limits: dict[str, Quantity] = Field(
        default_factory=dict, description="Limits, as in a pod.", max_length=32
    )

    @rule(
        "!has(self.requests) || !has(self.limits) || self.requests.all(name, !(name in self.limits) || "
        "!quantity(string(self.requests[name])).isGreaterThan(quantity(string(self.limits[name]))))",
        "a request is more than the limit of the same name: raise the limit or lower the request",
        field=".requests",
    )
    def requests_within_limits(self) -> bool:
        """Kubernetes' own rule for pods, said before there is a pod."""
        return all(
            parse_quantity(asked) <= parse_quantity(self.limits[name])
            for name, asked in self.requests.items()
            if name in self.limits
        )


NodeSelector = Annotated[
    dict[str, Annotated[str, Field(max_length=63)]],
    Field(description="Labels a node must have to run these pods.", max_length=64),
]
Tolerations = Annotated[
    list[Toleration],
    Field(
        description="Taints these pods tolerate.",
        max_length=64,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    ),
]
Affinity = Annotated[dict[str, Any] | None, Field(description="Affinity of these pods, as in a pod.")]
PriorityClassName = Annotated[
    str | None,
    Field(
        description="Priority class of these pods, which must exist; the cluster's default when empty.",
        min_length=1,
        max_length=253,
    ),
]
