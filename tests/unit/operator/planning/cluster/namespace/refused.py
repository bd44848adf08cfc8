"""What a namespace says of a resource: the engine of these cases takes 2 GPUs, the picker 500m cpu."""

from typing import Any

from tests.cases.planning import resource

from kvtier_operator.planning.cluster.namespace.namespace import Namespace, refusals
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.verdict import CheckResult, Outcome


def plan(**spec: Any) -> Plan:  # noqa: ANN401 - as in YAML
    engine = {"tensorParallelSize": 2} | dict(spec.pop("engine", {}))
    return make_plan(resource(engine=engine, **({"replicas": 2} | spec)), Observed())


def said(namespace: Namespace, outcome: Outcome = Outcome.REJECT, **spec: object) -> list[CheckResult]:
    """Results of one kind, each on one line."""
    found = refusals(plan(**spec), namespace)
    assert not any("\n" in each.message for each in found)
    return [each for each in found if each.outcome is outcome]
