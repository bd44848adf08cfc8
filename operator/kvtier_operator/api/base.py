"""What every model of the API has in common."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict

VALIDATIONS: Final = "x-kubernetes-validations"
_RULE_ATTRIBUTE: Final = "_kvtier_rule"
_ModelT = TypeVar("_ModelT", bound="ApiModel")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule over several fields of one model, once in CEL for the API server and once in Python."""

    cel: str  # the CEL expression, over `self`
    message: str  # what to say when it does not hold
    # the field that the message is about, relative to the model, such as `.tiers.cpu`; empty for the
    # model itself
    field: str
    holds: Callable[[Any], bool]  # the same rule in Python
    # what to say in place of the message of what somebody wrote, which the API server's cannot quote
    said_of: Callable[[Any], str] | None = None
    removes_field: bool = False  # whether the field has to go, with all that may be wrong below it


def rule(
    cel: str | Callable[[type["ApiModel"]], str],
    message: str,
    *,
    field: str = "",
    said_of: Callable[[Any], str] | None = None,
) -> Callable[[Callable[[_ModelT], bool]], Callable[[_ModelT], bool]]:
    """Marks a model's method as the Python side of a CEL rule; the method says whether the rule holds.

    Args:
        cel: The same rule in CEL, as it goes into the CRD; or what writes it of the model with all its fields.
        message: One line: what is wrong and what to do.
        field: The field the message is about, relative to the model, such as `.tiers.cpu`.
        said_of: What Python says in place of the message, of a model that breaks the rule.
    """

    def mark(method: Callable[[_ModelT], bool]) -> Callable[[_ModelT], bool]:
        def rule_of(model: type[ApiModel]) -> Rule:
            return Rule(cel if isinstance(cel, str) else cel(model), message, field, method, said_of)

        setattr(method, _RULE_ATTRIBUTE, rule_of)
        return method

    return mark


def cel_validation(cel: str, message: str, *, field: str = "") -> JsonDict:
    """One entry of a schema's `x-kubernetes-validations`."""
    validation: JsonDict = {"rule": cel, "message": message}
    return validation | ({"fieldPath": field} if field else {})


def _add_rules(schema: JsonDict, model: type["ApiModel"]) -> None:
    validations = [cel_validation(rule.cel, rule.message, field=rule.field) for rule in model.rules()]
    if validations:
        schema[VALIDATIONS] = [*validations]


class ApiModel(BaseModel):
    """A part of the resource: immutable, camelCase outside, refuses fields it does not know."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        json_schema_extra=_add_rules,
    )

    @classmethod
    def rules(cls) -> tuple[Rule, ...]:
        """The rules of this model, in the order they are written; those of what it extends come first."""
        return _rules_of(cls)


@cache
def _rules_of(model: type[ApiModel]) -> tuple[Rule, ...]:
    # A snapshot: pydantic completes some class attributes (the signature) when they are first read.
    attributes = (attribute for one in reversed(model.__mro__) for attribute in tuple(vars(one).values()))
    rules = (getattr(attribute, _RULE_ATTRIBUTE, None) for attribute in attributes)
    return tuple(rule_of(model) for rule_of in rules if rule_of)
