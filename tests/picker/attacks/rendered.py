"""What kvtier renders for a picker: the configuration that is attacked, and the memory that it may take."""

from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

_RESOURCE: Final = {
    "apiVersion": "kvtier.dev/v1alpha1",
    "kind": "KVCacheTier",
    "metadata": {"name": "example", "namespace": "example"},
    "spec": {
        "model": {"name": "Qwen/Qwen3-32B"},
        "tiers": {"cpu": {"capacity": "100Gi"}},
        "router": {"flavor": "builtin"},
    },
}


@dataclass(frozen=True, slots=True)
class Rendered:
    """A picker as a resource that says nothing of it gets it.

    Attributes:
        config: Its EndpointPickerConfig.
        limit_bytes: Its container's memory limit.
    """

    config: str
    limit_bytes: int


def rendered() -> Rendered:
    """The example's picker, planned now."""
    objects = build_objects(make_plan(parse_resource(_RESOURCE, "attacks"), Observed()))
    pod = _picker(objects, "Deployment")["spec"]["template"]["spec"]
    [container] = [container for container in pod["containers"] if container["name"] == "picker"]
    [config] = _picker(objects, "ConfigMap")["data"].values()
    return Rendered(config, int(parse_quantity(container["resources"]["limits"]["memory"])))


def _picker(objects: tuple[dict[str, Any], ...], kind: str) -> dict[str, Any]:
    [found] = [
        document
        for document in objects
        if document["kind"] == kind and document["metadata"]["name"] == "example-picker"
    ]
    return found
