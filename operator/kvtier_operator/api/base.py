"""What every model of the API has in common."""

from typing import Any, Final

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

VALIDATIONS: Final = "x-kubernetes-validations"


class ApiModel(BaseModel):
    """A part of the resource: immutable, camelCase outside, refuses fields it does not know."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


def cel(rule: str, message: str, *, field_path: str | None = None) -> dict[str, str]:
    """One CEL validation rule, as it stands in the CRD's `x-kubernetes-validations`."""
    validation = {"rule": rule, "message": message}
    return validation | ({"fieldPath": field_path} if field_path else {})


def with_rules(*rules: dict[str, str]) -> ConfigDict:
    """Model configuration that attaches CEL rules to the model's schema."""
    extra: dict[str, Any] = {VALIDATIONS: list(rules)}
    return ConfigDict(json_schema_extra=extra)
