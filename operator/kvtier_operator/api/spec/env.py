"""Environment variables of containers that a resource's author chooses."""

from typing import Any, Final

from pydantic import Field

from kvtier_operator.api.base import ApiModel, rule

VARIABLE_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_.-]*$"


class EnvVar(ApiModel):
    """An environment variable of a container."""

    name: str = Field(
        description="Name of the variable.",
        min_length=1,
        max_length=256,
        pattern=VARIABLE_PATTERN,
    )
    value: str | None = Field(
        None, description="Value of the variable; quote numbers and yes, no, on, off.", max_length=32768
    )
    value_from: dict[str, Any] | None = Field(
        None,
        description="Source of the value, as in a pod: secretKeyRef, configMapKeyRef, fieldRef or resourceFieldRef.",
        min_length=1,
        max_length=1,
    )

    @rule("!(has(self.value) && has(self.valueFrom))", "give value or valueFrom, not both")
    def has_one_source(self) -> bool:
        """A container's variable has a value or a source of one."""
        return self.value is None or self.value_from is None

    @rule(
        "self.name != 'LMCACHE_USE_EXPERIMENTAL'",
        "LMCACHE_USE_EXPERIMENTAL does nothing: LMCache and vLLM removed it; leave it out",
        field=".name",
    )
    def is_not_removed(self) -> bool:
        """A switch that is gone only misleads."""
        return self.name != "LMCACHE_USE_EXPERIMENTAL"
