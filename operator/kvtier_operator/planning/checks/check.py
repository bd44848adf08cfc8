"""What a check is: a pure function from the plan's parts to one verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kvtier_operator.api.resource import KVCacheTier, Spec
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.backends.backend_plan import BackendPlan
from kvtier_operator.planning.backends.traits import BackendTraits
from kvtier_operator.planning.cluster.nodes.pod_needs import keeps_away_its_like
from kvtier_operator.planning.cluster.policy.limits import OwnerPolicy
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.flavors.traits import FlavorTraits
from kvtier_operator.planning.kv_cache.geometry import Geometry
from kvtier_operator.planning.objects.names import Component, Names
from kvtier_operator.planning.observed import Machine, Observed
from kvtier_operator.planning.pod.budget_plan import Budget
from kvtier_operator.planning.pod_template.asked import engine_affinity
from kvtier_operator.planning.router.router_plan import RouterPlan
from kvtier_operator.planning.tiers.tier_plan import TiersPlan
from kvtier_operator.planning.verdict import CheckResult, Outcome


@dataclass(frozen=True, slots=True)
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
        return self.spec.engine.tensor_parallel_size * self.spec.engine.data_parallel_size


Check = Callable[[CheckInput], CheckResult]

_AS_WRITTEN: Final = "runs it as it is written"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Makes one check's verdicts.

    Attributes:
        name: The check.
        field: Path of the field that it is about, unless a verdict names another.
    """

    name: str
    field: str

    def passed(self, message: str, *, reason: str = "Passed", field: str = "") -> CheckResult:
        """Nothing to do; the message says what was found."""
        return CheckResult(self.name, Outcome.PASS, reason, message, field or self.field)

    def warn(
        self, reason: str, message: str, *, by_itself: str = _AS_WRITTEN, field: str = ""
    ) -> CheckResult:
        """It will run, but not as a reader may expect.

        Args:
            reason: CamelCase.
            message: What is found, and what its reader can do.
            by_itself: What becomes of it if that is nothing, after "by itself kvtier".
            field: Path of the field that it is about, in place of the check's.
        """
        full_message = f"{message}; by itself kvtier {by_itself}"
        return CheckResult(self.name, Outcome.WARN, reason, full_message, field or self.field)

    def reject(self, reason: str, message: str, *, field: str = "") -> CheckResult:
        """It cannot run."""
        return CheckResult(self.name, Outcome.REJECT, reason, message, field or self.field)

    def reject_each(self, reason: str, faults: Sequence[tuple[str, str]]) -> CheckResult:
        """The same for several things at once, so that nobody mends one to be told the next.

        Args:
            reason: As for one.
            faults: Field and message of each; at least one.
        """
        (field, first), *others = faults
        message = "; ".join((first, *(f"{place}: {text}" for place, text in others)))
        return self.reject(reason, message, field=field)
