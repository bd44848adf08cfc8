"""What a check is: a pure function from the plan's parts to one verdict, with its name and field."""

from collections.abc import Callable
from dataclasses import dataclass

from kvtier_operator.api.resource import KVCacheTier, Spec
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.backends.traits import BackendTraits
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.base.owner_policy import OwnerPolicy
from kvtier_operator.planning.base.tier_plan import BackendPlan, TiersPlan
from kvtier_operator.planning.cluster.pod_needs import keeps_away_its_like
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.flavors.traits import FlavorTraits
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.observed import Machine, Observed
from kvtier_operator.planning.pod.budget import Budget
from kvtier_operator.planning.pod_template.template import engine_affinity
from kvtier_operator.planning.router.router_plan import RouterPlan
from kvtier_operator.planning.verdict import CheckResult, Verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInput:
    """Everything a check may look at."""

    resource: KVCacheTier
    observed: Observed
    geometry: Geometry
    backend: BackendPlan
    tiers: TiersPlan
    budget: Budget
    router: RouterPlan

    @property
    def spec(self) -> Spec:
        """What is wanted."""
        return self.resource.spec

    @property
    def traits(self) -> BackendTraits:
        """What is true of the backend whatever the resource says."""
        return traits_of(self.spec.backend)

    @property
    def picker(self) -> FlavorTraits:
        """What is true of the picker's flavour whatever the resource says."""
        return flavor_traits(self.spec.router.flavor)

    @property
    def policy(self) -> OwnerPolicy:
        """What the cluster's owner lets resources ask for."""
        return self.observed.policy

    @property
    def machine(self) -> Machine:
        """The machine of a local run; all unknown when planning for a cluster."""
        return self.observed.machine or Machine()

    @property
    def one_engine_a_node(self) -> bool:
        """Whether the resource's own anti-affinity keeps its engines on nodes of their own."""
        labels = Names.of_resource(self.resource).labels(Component.ENGINE)
        return keeps_away_its_like(engine_affinity(self.spec), labels)

    @property
    def ranks(self) -> int:
        """Ranks of one engine pod, all engines together."""
        return self.spec.engine.ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Verdicts):
    """A check: it makes verdicts of its own, and is called with a plan's parts for the one on them."""

    run: Callable[[CheckInput], CheckResult]

    def __call__(self, parts: CheckInput) -> CheckResult:
        """The verdict on a plan."""
        return self.run(parts)


def check(
    field: str, *, name: str = "", about_sizes: bool = False
) -> Callable[[Callable[[CheckInput], CheckResult]], Check]:
    """Makes a function a check.

    Args:
        field: Path of the field that it is about, unless a verdict names another.
        name: The check's; the function's with hyphens where empty.
        about_sizes: Whether BudgetFits tells of it.
    """
    return lambda run: Check(name or run.__name__.replace("_", "-"), field, about_sizes, run=run)
