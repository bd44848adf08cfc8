"""Refuses a pod template that sets what is planned, or what gives a pod power over its node."""

from collections.abc import Iterator

from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.objects.engine.containers import runs_as_root
from kvtier_operator.planning.objects.engine.deployment import planned_engine_template
from kvtier_operator.planning.objects.picker import planned_picker_template
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod_template.asked import ENGINE, ROUTER
from kvtier_operator.planning.pod_template.tables import engine_table, picker_table


def refuse_templates(plan: Plan) -> None:
    """Does nothing where the resource's templates can be merged into the plan's pods.

    Raises:
        InvalidInputError: With one problem for every wrong field.
    """
    if problems := [*_problems(plan)]:
        raise InvalidInputError("", *problems)


def _problems(plan: Plan) -> Iterator[Problem]:
    spec = plan.resource.spec
    if (given := spec.engine.pod_template) is not None:
        table = engine_table(planned_engine_template(plan)["spec"], root=runs_as_root(spec))
        yield from table.faults(given, ENGINE)
    if (given := spec.router.pod_template) is not None:
        yield from picker_table(planned_picker_template(plan)["spec"]).faults(given, ROUTER)
