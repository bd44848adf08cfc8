"""Kubernetes quantities of bytes, parsed as the API server parses them."""

import re
from decimal import Decimal
from typing import Any, Final, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

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
# The pattern that Kubernetes publishes for quantities in CRDs (controller-tools markers, IntOrString quantities).
OPENAPI_PATTERN: Final = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
_MAX: Final = 2**63 - 1


def parse_bytes(text: str | int) -> int:
    """Number of bytes in a Kubernetes quantity, rounded up to a whole byte as Kubernetes does.

    Args:
        text: A quantity such as `100Gi`, `1T`, `512Mi`, `1e9` or a plain number of bytes.

    Returns:
        Bytes; negative where the quantity is (the caller says what a negative size means).

    Raises:
        ValueError: The text is not a quantity, or does not fit 64 bits.
    """
    match = _GRAMMAR.fullmatch(str(text))
    if match is None:
        raise ValueError(
            f"{text!r} is not a quantity; write a number with Ki, Mi, Gi, Ti or k, M, G, T, as in 100Gi"
        )
    value = Decimal(match["number"]) * (
        Decimal(10) ** int(match["exponent"]) if match["exponent"] else _SUFFIX_FACTOR[match["suffix"] or ""]
    )
    if abs(value) > _MAX:
        raise ValueError(f"{text!r} does not fit 64 bits; the largest quantity is {_MAX} bytes")
    whole = int(value)
    return whole + (1 if value > whole else 0)


class ByteQuantity(str):
    """A quantity of bytes as it was written; `bytes` is its value.

    Zero and negative sizes are refused: there is no tier, buffer or limit of that size.
    """

    __slots__ = ("bytes",)
    bytes: int

    def __new__(cls, text: str | int) -> Self:
        self = super().__new__(cls, str(text))
        self.bytes = parse_bytes(text)
        return self

    @classmethod
    def _validate(cls, value: Any) -> Self:  # noqa: ANN401 - whatever the YAML held
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise PydanticCustomError(
                "quantity", "expected a quantity such as 100Gi, not {type}", {"type": type(value).__name__}
            )
        try:
            quantity = cls(value)
        except ValueError as error:
            raise PydanticCustomError("quantity", "{reason}", {"reason": str(error)}) from error
        if quantity.bytes <= 0:
            raise PydanticCustomError(
                "quantity", "{text} is not a size; it must be more than 0 bytes", {"text": str(value)}
            )
        return quantity

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
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": OPENAPI_PATTERN,
            "x-kubernetes-int-or-string": True,
        }
