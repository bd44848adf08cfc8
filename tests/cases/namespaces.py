"""Bounds of a namespace for tests, as an API server hands them out."""

from collections.abc import Mapping
from typing import Any

from kvtier_operator.planning.cluster.namespace.limit_range import LimitRange, limit_range_from_object
from kvtier_operator.planning.cluster.namespace.quota import Quota, quota_from_object


def limit_range(type_: str = "Container", /, **item: Mapping[str, str]) -> LimitRange:
    """A LimitRange of one item, given by the names of its fields."""
    return limit_range_from_object(
        {"metadata": {"name": "team"}, "spec": {"limits": [{"type": type_, **item}]}}
    )


def quota(hard: Mapping[str, str], used: Mapping[str, str] | None = None, **spec: object) -> Quota:
    """A ResourceQuota with what is taken of it."""
    document: dict[str, Any] = {
        "metadata": {"name": "team"},
        "spec": {"hard": hard, **spec},
        "status": {"hard": hard, "used": used or {}},
    }
    return quota_from_object(document)
