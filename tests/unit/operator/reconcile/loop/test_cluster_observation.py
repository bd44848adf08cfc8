"""What a plan is made of, as the watches show it."""

from types import SimpleNamespace

import pytest
from tests.unit.operator.reconcile.objects import stored_resource

from kvtier_operator.planning.base.owner_policy import OwnerPolicy
from kvtier_operator.planning.images import ImageSource
from kvtier_operator.reconcile.cache.resources import ResourceCache, key_of
from kvtier_operator.reconcile.cache.watches import NOT_INSTALLED
from kvtier_operator.reconcile.loop.plan_resource import observe_cluster


@pytest.mark.parametrize(
    ("why_not", "has_keda"), [("", True), (NOT_INSTALLED, False), ("503 for a moment", True)]
)
def test_only_a_kind_that_is_not_installed_means_that_there_is_no_keda(
    why_not: str, *, has_keda: bool
) -> None:
    """Otherwise a list that fails once puts a second autoscaler beside KEDA's."""
    resources = ResourceCache(lambda _: None)
    resources.upsert(stored_resource())
    key = key_of(stored_resource())
    resource = resources.get(key)
    assert resource
    watches = SimpleNamespace(
        nodes=SimpleNamespace(all=(), version=0),
        storage_classes=SimpleNamespace(all=None, version=0),
        nodes_unknown="",
        why_not={"ScaledObject": why_not}.__getitem__,
    )
    found = observe_cluster(resource, watches, ImageSource(), OwnerPolicy())  # type: ignore[arg-type]
    assert found.observed.serves_scaled_objects is has_keda
