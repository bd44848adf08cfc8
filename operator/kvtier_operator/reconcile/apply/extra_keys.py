"""Keys that somebody added to a map whose meaning changes with every key, and the patch that removes them."""

from collections.abc import Mapping
from typing import Any

from kvtier_operator.reconcile.apply.matching import ATOMIC_MAPS


def removal_of_extra_keys(
    live: Mapping[str, Any], desired: Mapping[str, Any], field: str = ""
) -> dict[str, Any]:
    """A merge patch that removes the extra keys; empty where there are none.

    An apply keeps keys that another manager set, such as one more label in an InferencePool's selector.

    Args:
        live: The live value.
        desired: The desired value.
        field: Name of the field that has these values.
    """
    patch: dict[str, Any] = dict.fromkeys(live.keys() - desired.keys()) if field in ATOMIC_MAPS else {}
    for key, value in desired.items():
        there = live.get(key)
        if not isinstance(value, Mapping) or not isinstance(there, Mapping):
            continue
        if inner := removal_of_extra_keys(there, value, key):
            patch[key] = inner
    return patch
