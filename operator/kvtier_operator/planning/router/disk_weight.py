"""Why a picker does not look for prefixes on disk."""

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.tiers.loading import loadings


def disk_weight_notes(spec: Spec, geometry: Geometry) -> tuple[str, ...]:
    """A line where a disk that may pay weighs nothing: the API server writes the default of 0."""
    if spec.tiers.disk is None or spec.router.weights.by_scorer()["disk_prefix"]:
        return ()
    loading = next((loading for loading in loadings(spec, geometry) if loading.tier is Tier.DISK), None)
    if loading is None or (loading.pays is not None and loading.break_even_tokens is None):
        return ()
    note = (
        "the picker looks for prefixes in memory alone: spec.router.weights.diskPrefix is 0, its default; 1 "
        "sends a prompt that has left memory where a disk has it, away from pods that are idler"
    )
    return (note,)
