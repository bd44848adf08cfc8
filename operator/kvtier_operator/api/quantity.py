"""Kubernetes quantities, parsed as the API server parses them.

The official client has a parser (kubernetes.utils.quantity), which the planner may not import: the client takes a
second, more than a plan may.
"""

import re
from decimal import Decimal
from typing import Any, ClassVar, Final, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from kvtier_common.one_line import one_line
from kvtier_operator.api.base import VALIDATIONS, cel_validation

# Suffixes and grammar: k8s.io/apimachinery/pkg/api/resource, Quantity ("<quantity> ::= <signedNumber><suffix>").
_SUFFIX_FACTOR: Final = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
    "Ki": Decimal(2) ** 10,
    "Mi": Decimal(2) ** 20,
    "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40,
    "Pi": Decimal(2) ** 50,
    "Ei": Decimal(2) ** 60,
}
_GRAMMAR: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]{1,3}))?"
)
PATTERN: Final = f"^{re.sub(r'[?]P<[a-z]+>', '?:', _GRAMMAR.pattern)}$"
"""What a quantity that is text matches, for schemas that know no CEL."""
# One exbibyte: more than any machine has, and far from where 64 bits end.
_MAX_SIZE_BYTES: Final = 2**60
# What CEL says of bytes; how to go on is each type's own to say.
_CEL_BYTES: Final = (
    f"type(self) == int ? self > 0 && self <= {_MAX_SIZE_BYTES} : isQuantity(self) && "
    "quantity(self).isGreaterThan(quantity('0')) && !quantity(self).isGreaterThan(quantity('1Ei'))"
)
# The longest text a quantity may have; bounds the cost of the CEL rules and of the arithmetic here.
MAX_TEXT_LENGTH: Final = 32


def parse_quantity(text: str | int) -> Decimal:
    """Value of a Kubernetes quantity, exact.

    Raises:
        ValueError: The text is not a quantity.
    """
    match = _GRAMMAR.fullmatch(str(text)) if len(str(text)) <= MAX_TEXT_LENGTH else None
    if match is None:
        raise ValueError(
            f"{one_line(str(text), MAX_TEXT_LENGTH)!r} is not a quantity; write a number with Ki, Mi, Gi, Ti or k, M, G, T, as in 100Gi"
        )
    if match["exponent"]:
        return Decimal(match["number"]).scaleb(int(match["exponent"]))
    return Decimal(match["number"]) * _SUFFIX_FACTOR[match["suffix"] or ""]


def parse_bytes(text: str | int) -> int:
    """Number of bytes in a Kubernetes quantity, rounded away from zero to a whole byte as Kubernetes does.

    Returns:
        Bytes; negative where the quantity is (the caller says what a negative size means).

    Raises:
        ValueError: The text is not a quantity, or is beyond one exbibyte.
    """
    value = parse_quantity(text)
    if abs(value) > _MAX_SIZE_BYTES:
        raise ValueError(f"{text!r} is too large; the largest size is 1Ei")
    whole = int(value)
    remainder = value - whole
    return whole + (remainder > 0) - (remainder < 0)


class Quantity(str):
    """A quantity of a compute resource as it was written, such as a request of `500m` CPU: from 0 to 1Ei."""

    __slots__ = ()

    cel_rules: ClassVar = (
        cel_validation(
            f"type(self) == int ? self >= 0 && self <= {_MAX_SIZE_BYTES} : isQuantity(self) && "
            "!quantity(self).isLessThan(quantity('0')) && !quantity(self).isGreaterThan(quantity('1Ei'))",
            "must be a quantity from 0 to 1Ei, such as 8, 500m or 100Gi",
        ),
    )

    def __new__(cls, text: str | int) -> Self:
        """Takes a quantity as YAML has it; raises ValueError for anything that is not one."""
        self = super().__new__(cls, str(text))
        self._check()
        return self

    def _check(self) -> None:
        value = parse_quantity(self)
        if value < 0:
            raise ValueError(f"'{self}' is negative; it must be 0 or more")
        if value > _MAX_SIZE_BYTES:
            raise ValueError(f"'{self}' is too large; the largest quantity is 1Ei")

    @classmethod
    def _validate(cls, value: Any) -> Self:  # noqa: ANN401 - whatever the YAML held
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise PydanticCustomError("quantity_type", "Input should be a quantity")
        try:
            return cls(value)
        except ValueError as error:
            raise PydanticCustomError("quantity", "{reason}", {"reason": str(error)}) from error

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validate, serialization=core_schema.plain_serializer_function_ser_schema(str)
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {
            "x-kubernetes-int-or-string": True,
            "maxLength": MAX_TEXT_LENGTH,
            VALIDATIONS: [*cls.cel_rules],
        }


class ByteQuantity(Quantity):
    """A quantity of bytes as it was written; `bytes` is its value.

    Zero and negative sizes are refused: there is no tier, buffer or limit of that size.
    """

    __slots__ = ("bytes",)
    bytes: int

    cel_rules: ClassVar = (
        cel_validation(
            _CEL_BYTES,
            "must be a quantity of bytes of more than 0 and at most 1Ei, such as 512Mi, 100Gi or 1T",
        ),
    )

    _zero: ClassVar = "is not a size; it must be more than 0 bytes"

    def _check(self) -> None:
        self.bytes = parse_bytes(self)
        if self.bytes <= 0:
            raise ValueError(f"'{self}' {self._zero}")


class ByteBound(ByteQuantity):
    """A bound on bytes. Zero, which may mean none or nothing at all, is refused: no bound is one left out."""

    __slots__ = ()

    cel_rules: ClassVar = (
        cel_validation(
            _CEL_BYTES,
            "must be a quantity of bytes of more than 0 and at most 1Ei, such as 200Gi; leave it out for no bound",
        ),
    )

    _zero: ClassVar = "is not a bound; give more than 0 bytes, or leave it out for no bound"
