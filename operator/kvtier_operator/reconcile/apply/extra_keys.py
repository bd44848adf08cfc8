"""What somebody added to a map that says something else with a key more, and how it is taken out again."""

from collections.abc import Mapping
from typing import Any

from kvtier_operator.reconcile.apply.matching import WHOLE


def without_surplus(live: Mapping[str, Any], wanted: Mapping[str, Any], field: str = "") -> dict[str, Any]:
    """A merge patch that takes it out; empty where there is none.

    An apply leaves keys alone that another manager set, such as a label more in an InferencePool's selector.

    Args:
        live: What there is.
        wanted: What there should be.
        field: Name of the field that this is the value of.
    """
    patch: dict[str, Any] = dict.fromkeys(live.keys() - wanted.keys()) if field in WHOLE else {}
    for key, value in wanted.items():
        there = live.get(key)
        if not isinstance(value, Mapping) or not isinstance(there, Mapping):
            continue
        if inner := without_surplus(there, value, key):
            patch[key] = inner
    return patch
