"""Whether the picker's index fits the memory that the resource leaves it."""

from typing import Final

from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.plan import CheckResult
from kvtier_operator.planning.units import size

_VERDICTS: Final = Verdicts("picker-memory", "spec.router.resources.limits.memory")


def picker_memory(given: CheckInput) -> CheckResult:
    """A picker that is killed for memory forgets its index, and does so again once that has filled up."""
    needed_bytes = given.router.resources.memory_bytes
    limit = given.router.resources.limits["memory"]
    if parse_bytes(limit) < needed_bytes:
        return _VERDICTS.warn(
            "PickerMemoryShort",
            f"{limit} is less than the {size(needed_bytes)} that the picker may come to with a full index: "
            "it is killed then and forgets where prefixes are; raise it",
        )
    return _VERDICTS.passed(f"up to {size(needed_bytes)} of {limit}")
