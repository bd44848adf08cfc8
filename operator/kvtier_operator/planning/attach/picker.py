"""A configuration for the endpoint picker of others, with the capacities of the tiers that its pods have."""

import re
from typing import Any, Final

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.api.spec.router import SUPPORTED_VERSIONS, RouterSpec, flavor_of
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.backends import plan_backend
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.router.router_plan import plan_router
from kvtier_operator.planning.tiers import serve_tiers
from kvtier_operator.planning.tiers.capacity import plan_tiers

_KEY: Final = "epp"
"""Where KServe looks, if its service names no other (v0.20.0, llmisvc/config_merge.go)."""


def known_picker_version(text: str) -> str:
    """The version that kvtier knows a picker by: 0.9 of 0.9 and of a release's tag, v0.9.1.

    Raises:
        InvalidInputError: There is none.
    """
    version = next((known for known in SUPPORTED_VERSIONS if _is_release(text, known)), None)
    if version is None:
        message = f"{text!r} is not known: pickers are {', '.join(SUPPORTED_VERSIONS)}"
        raise InvalidInputError("--picker-version", Problem("", message))
    return version


def _is_release(text: str, minor: str) -> bool:
    return bool(re.fullmatch(rf"v?{re.escape(minor)}(\.\d+)?(-.+)?", text))


def others_picker_config(resource: KVCacheTier, observed: Observed, version: str) -> dict[str, Any]:
    """A ConfigMap with an EndpointPickerConfig, for one kind of engine pods: one rank, the model's own dtype.

    Args:
        resource: One with `spec.attach` and a model.
        observed: Where the model's configuration is.
        version: Of their picker, of SUPPORTED_VERSIONS.

    Raises:
        InvalidInputError: It names no model, or its KV geometry cannot be had.
    """
    if resource.spec.served_model is None:
        message = "is required for a picker's configuration: tokens are counted by the model's KV cache"
        raise InvalidInputError("", Problem("spec.model", message))
    router = RouterSpec(flavor=flavor_of(version), version=version)
    spec = resource.planned_spec.model_copy(update={"router": router})
    geometry = resolve_geometry(spec, observed)
    tiers = plan_tiers(spec, geometry, serve_tiers(spec, geometry, plan_backend(spec, geometry)))
    plan = plan_router(resource.model_copy(update={"spec": spec}), geometry, tiers, observed.images)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{resource.metadata.name}-picker", "namespace": resource.metadata.namespace},
        "data": {_KEY: plan.config},
    }
