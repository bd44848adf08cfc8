"""Whether the picker's index fits the memory that the resource leaves it."""

from typing import Final

from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.units import GIB, size
from kvtier_operator.planning.verdict import CheckResult
from kvtier_scorer.config.body_limits import body_limits

_VERDICTS: Final = Verdicts("picker-memory", "spec.router.resources.limits.memory")
_BODIES: Final = {True: "all the bodies that it takes", False: "many requests under way"}
_MUCH_BYTES: Final = 4 * GIB
"""Of bodies at worst; a person should have meant to give a picker more."""


def picker_memory(given: CheckInput) -> CheckResult:
    """A picker that is killed for memory forgets its index, and does so again once that has filled up."""
    needed_bytes = given.router.resources.memory_bytes
    limit = given.router.resources.limits["memory"]
    if parse_quantity(limit) < needed_bytes:
        return _VERDICTS.warn(
            "PickerMemoryShort",
            f"{limit} is less than the {size(needed_bytes)} that the picker may come to with a full index "
            f"and {_BODIES[given.picker.memory.bounds_bodies]}: it is killed then and forgets where "
            "prefixes are; raise it",
            by_itself="keeps to the limit, and a picker that was killed starts anew",
        )
    asked = given.spec.router.max_body_size
    follows = "memory" not in given.spec.router.resources.limits
    if asked and follows and body_limits(None, asked.bytes).worst_memory_bytes > _MUCH_BYTES:
        return _VERDICTS.warn(
            "PickerMemoryLarge",
            f"bodies of {asked} make the picker's memory limit {limit}, for those that clients may send at a "
            f"time: lower it, or set {_VERDICTS.field} if so much is meant",
            by_itself=f"requests {given.router.resources.requests['memory']}: the rest is the limit's alone",
            field="spec.router.maxBodySize",
        )
    return _VERDICTS.passed(f"up to {size(needed_bytes)} of {limit}")
