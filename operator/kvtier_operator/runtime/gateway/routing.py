"""How a local run finds an engine: with kvtier's own picker, whichever flavour the resource names."""

from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.router.router_plan import LOCAL_FLAVOR, local_picker
from kvtier_operator.runtime.gateway.running import Routing


def local_routing(plan: Plan) -> Routing:
    """The picker's configuration and the failure mode of a run on this machine."""
    return Routing(
        local_picker(plan.resource, plan.geometry, plan.tiers).text, plan.resource.spec.router.failure_mode
    )


def routing_note(plan: Plan) -> str | None:
    """What differs from a cluster, in one line; None where nothing does."""
    router = plan.resource.spec.router
    if router.flavor is LOCAL_FLAVOR or plan.resource.spec.least_replicas == 1:
        return None
    return (
        f"spec.router.flavor: {router.flavor} runs on clusters only; here kvtier's own picker takes its "
        "place, with the same weights"
    )


def picker_note(url: str, explain_url: str) -> str:
    """Where a person sees what the picker does, in one line.

    Args:
        url: Base URL of its metrics.
        explain_url: URL of its explanations.
    """
    return (
        f"picker: counts at {url}/metrics; a request posted to {explain_url}/v1/... gets each engine's scores"
    )
