"""The KV geometry of one engine: its model's shape, from whatever knows it, and what a token of it costs."""

from kvtier_operator.api.resource import Spec
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.kv_cache.cost import kv_geometry
from kvtier_operator.planning.kv_cache.draft_cost import counted
from kvtier_operator.planning.model_shape.config.overrides import blamed, overridden
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.model_shape.layers.draft import must_not_be_a_draft, plan_draft, with_draft
from kvtier_operator.planning.model_shape.resolve import resolve_shape
from kvtier_operator.planning.observed import Observed


def resolve_geometry(spec: Spec, observed: Observed) -> Geometry:
    """KV geometry of one engine, from the first of: the resource, the model's config.json, the catalogue.

    Layers that draft tokens are among its layers.

    Raises:
        InvalidInputError: Nothing knows the model, or what is known cannot be sized.
    """
    must_not_be_a_draft(observed)
    observed = overridden(spec, observed)
    try:
        shape = resolve_shape(spec.model, observed)
    except InvalidInputError as error:
        raise blamed(error, spec) from error
    draft = plan_draft(spec, shape, observed)
    geometry = kv_geometry(with_draft(shape, draft), spec)
    return geometry if draft is None else counted(geometry, draft)
